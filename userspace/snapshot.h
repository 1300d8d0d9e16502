/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a worker works by: one configuration and everything built from it.
 * Immutable; a reload swaps one pointer (RCU, quiescent-state flavour), and a
 * worker is quiescent once per turn of its loop.
 */
#ifndef HEADGATE_SNAPSHOT_H
#define HEADGATE_SNAPSHOT_H

#include "backend.h"
#include "config/config.h"
#include "route.h"

/*
 * A listener lives as long as its sockets, over many snapshots. Connections
 * keep a pointer to it, so it is never freed, only closed and taken again.
 */
struct listener {
	char label[ADDRESS_TEXT + 8]; /* as in the configuration */
	struct address address;
	unsigned int transport; /* one TRANSPORT_ bit */
	int *fds;		/* one a worker; -1 once closed */
	unsigned int nr_fds;
};

struct snapshot_listener {
	struct listener *listener;
	const struct config_listen *config;
};

struct snapshot {
	struct config *config; /* owned */
	struct route_table *routes;
	struct backend_set *backends;
	struct snapshot_listener *listeners;
	unsigned int nr_listeners;
	uint64_t generation; /* counted from 1; no two snapshots share one */
};

/*
 * Takes `c` over, also on failure. `previous` may be NULL. The listeners are
 * filled in by the caller. NULL: out of memory.
 */
struct snapshot *snapshot_new(struct config *c,
			      const struct snapshot *previous);
/* After a grace period, and never before its successor was built. */
void snapshot_free(struct snapshot *s);

/* The line that a listener has in this snapshot; NULL: it was removed. */
const struct config_listen *
snapshot_find_listen(const struct snapshot *s, const struct listener *listener);

/* The one that is in force; loaded (acquire) inside a read side. */
extern struct snapshot *snapshot_current;

#endif
