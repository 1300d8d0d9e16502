/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One server of a backend at run time. A server object outlives reloads: it
 * is found again by (backend name, label), and is freed when neither a pool
 * nor a health check nor a connection holds it.
 */
#ifndef HEADGATE_SERVER_H
#define HEADGATE_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "address.h"

enum server_state {
	SERVER_UP,	/* or not checked */
	SERVER_FAILING, /* marked by connections; tried when all others are */
	SERVER_DOWN,	/* found down by its check */
};

struct server {
	/* fixed at birth */
	char *backend_name;
	char *label; /* "192.0.2.1:443", "[…]:443", "unix:/run/a.sock" */
	struct address address; /* AF_UNSPEC: a unix socket */
	socklen_t sockaddr_len;
	union {
		struct sockaddr sa;
		struct sockaddr_storage storage;
		struct sockaddr_un un;
	} sockaddr;

	/* counted by workers, relaxed */
	_Atomic uint32_t connections; /* now; holds the server alive */
	_Atomic uint64_t connections_total;
	_Atomic uint64_t failures; /* of connecting, ever */
	_Atomic uint64_t bytes_in, bytes_out;

	/* health: passive marks by workers, the rest by the control thread */
	_Atomic uint32_t
		failed_at_ms; /* of the worker's clock; 0: not failing */
	_Atomic bool is_down; /* by its check */

	/* the control thread's own */
	struct server *next;   /* in the table of all servers */
	unsigned int nr_holds; /* by pools, and by its check */
	uint64_t listed_in;    /* the last pool that took it in */
	struct health_probe *probe;
};

/* Which servers of one connection have failed it; zero to begin with. */
#define BACKEND_TRIES_MAX 3
struct backend_tries {
	const struct server *failed[BACKEND_TRIES_MAX];
	unsigned int nr_failed;
};

/* How long a passive mark lasts. */
#define SERVER_FAILING_MS 10000

/* Found, or made: not held yet. NULL: out of memory. Control thread. */
struct server *server_find_address(const char *backend_name,
				   const struct address *address);
struct server *server_find_path(const char *backend_name, const char *path);

/* Keeps a server alive, as a pool does. Control thread. */
static inline void server_hold(struct server *s)
{
	s->nr_holds++;
}

static inline void server_release(struct server *s)
{
	s->nr_holds--;
}

/* Frees those that nobody holds; after a grace period. Control thread. */
void server_collect(void);

/* One connection more, or fewer, on a server. Any thread. */
static inline void server_get(struct server *s)
{
	atomic_fetch_add_explicit(&s->connections, 1, memory_order_relaxed);
}

static inline void server_put(struct server *s)
{
	atomic_fetch_sub_explicit(&s->connections, 1, memory_order_release);
}

/* A connection attempt failed, or succeeded (which clears the mark). */
void server_mark_failure(struct server *s, uint32_t now_ms);
void server_mark_success(struct server *s);
enum server_state server_state(const struct server *s, uint32_t now_ms);
const char *server_state_name(enum server_state state);

#endif
