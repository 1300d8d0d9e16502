/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One TCP connection's life: accepted, read until there is a decision,
 * connected, relayed, ended.
 */
#ifndef HEADGATE_TCP_H
#define HEADGATE_TCP_H

#include "conn.h"

#define TCP_ACCEPTS 64 /* of one listener in one turn */

/*
 * Takes in what the listener has queued, a share of it. 0: all of it; 1: more
 * may be there; -EMFILE and its like: the process can not take one more, and
 * the caller backs off.
 */
int tcp_accept(struct loop *l, struct listener *listener,
	       const struct config_listen *config, int fd);

/* `events` are epoll's. A connection that has ended ignores them. */
void tcp_event(struct loop *l, struct conn *c, unsigned int side,
	       uint32_t events);

/* Hand this to timer_expire() with the loop as its context. */
void tcp_timeout(void *loop, struct timer *t);

/* Those that had more to do than their share of a turn. */
void tcp_run_ready(struct loop *l);

/* The drain's deadline: ends all that are left. */
void tcp_end_all(struct loop *l);

#endif
