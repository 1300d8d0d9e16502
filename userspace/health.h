/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Active health checks: a TCP (or unix) connect every interval, `rise`
 * successes to come up, `fall` failures to go down. A server begins up, and
 * while its state is in doubt it is asked once a second. Runs in the control
 * thread.
 */
#ifndef HEADGATE_HEALTH_H
#define HEADGATE_HEALTH_H

#include "backend.h"

struct health;

/* Called when a server changes: for one log line. */
typedef void health_change_fn(void *context, const struct server *s,
			      bool is_down, const char *why);

/* NULL: out of memory or descriptors. */
struct health *health_new(health_change_fn *change, void *context);
void health_free(struct health *h);

/*
 * The descriptor to watch for EPOLLIN; health_turn() when it is ready, it
 * never blocks. (An epoll instance with a timerfd inside.)
 */
int health_fd(const struct health *h);
void health_turn(struct health *h);

/*
 * Follow the servers of these backends from now on (NULL: none); states of
 * kept servers are kept, and one that is no longer checked counts as up. Call
 * it after each reload, and whenever the addresses of a name have changed
 * (resolve.h reports that). Keeps nothing of `set`. 0 or -ENOMEM.
 */
int health_watch(struct health *h, const struct backend_set *set);

#endif
