/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backends at run time: which servers they have, and which is next. Workers
 * read; one thread, the control thread, changes.
 */
#ifndef HEADGATE_BACKEND_H
#define HEADGATE_BACKEND_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "server.h"

/* What backend_pick() chooses from; swapped whole (RCU). */
struct server_pool;

struct backend {
	const struct config_backend *config;
	struct server_pool *_Atomic pool; /* never NULL, may be empty */
	_Atomic uint32_t turn;		  /* round robin */
};

struct backend_set {
	struct backend *backends; /* parallel to config->backends */
	unsigned int nr_backends;
};

/*
 * Builds the set for `c`, taking over the server objects that it still names,
 * and from `old` (which may be NULL) the addresses of names. Names that are
 * not resolved yet have no servers until resolve.c brings them. NULL: out of
 * memory. Control thread.
 */
struct backend_set *backend_set_new(const struct config *c,
				    const struct backend_set *old);

/* After a grace period, and never before its successor was built. */
void backend_set_free(struct backend_set *s);

/*
 * Replaces the servers of host `server_index` of a backend by `nr` addresses
 * (the port is set here). Waits for no reader: the old pool is freed by
 * backend_collect(). The same addresses change nothing. 0 or -ENOMEM. Control
 * thread.
 */
int backend_set_addresses(struct backend *b, unsigned int server_index,
			  const struct address *addresses, size_t nr);

/*
 * Frees the pools that were replaced, after a grace period (which it waits
 * for, if there are any), and the servers that nobody holds any more. Control
 * thread, now and then.
 */
void backend_collect(void);

/*
 * The next server to try for a client, or NULL when none is left: by the
 * backend's balance among those that are up, then backups, then those that
 * are failing. Inside an RCU read side; server_get() before leaving it.
 */
struct server *backend_pick(struct backend *b, const struct address *client,
			    uint32_t now_ms, const struct backend_tries *tries);

/*
 * Calls `fn` once for every server: status, health checks. Control thread, or
 * inside a read side.
 */
typedef void server_fn(void *context, struct server *s);
void backend_for_each(struct backend *b, server_fn *fn, void *context);

#endif
