/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way to a server: which one, connecting, the next one when it fails, and
 * the first write, which carries the PROXY header and all bytes read so far.
 */
#ifndef HEADGATE_UPSTREAM_H
#define HEADGATE_UPSTREAM_H

#include "conn.h"

enum upstream_result {
	UPSTREAM_WAIT,	/* CONN_CONNECT: an event or the timer goes on */
	UPSTREAM_READY, /* CONN_RELAY */
	UPSTREAM_ENDED, /* refused; the connection is no longer ours */
};

/*
 * Asks the servers of `backend` in turn. `bytes` are all that the client sent
 * so far, of which c->skip are no business of the server; they are kept when
 * they have to wait.
 */
enum upstream_result upstream_connect(struct loop *l, struct conn *c,
				      unsigned int backend,
				      struct span bytes);

/*
 * In CONN_CONNECT: the server's socket had an event. UPSTREAM_WAIT with the
 * server gone (c->server is NULL) asks the caller to decide again.
 */
enum upstream_result upstream_event(struct loop *l, struct conn *c);

/* The server that is asked did not answer: as upstream_event(). */
void upstream_give_up(struct loop *l, struct conn *c, enum reason why);

#endif
