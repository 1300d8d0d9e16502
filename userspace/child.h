/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The router as the supervisor sees it. */
#ifndef HEADGATE_CHILD_H
#define HEADGATE_CHILD_H

#include "listener.h"
#include "outcome.h"
#include "router.h"

struct child {
	pid_t pid; /* 0: there is none */
	int socket;
	int mount_ns; /* -1: it has no jail */
	unsigned int nr_workers;
	unsigned int nr_unanswered; /* calls of child_ping() since a PONG */
	uint64_t started_ms;
};

/* Forks it and waits until it is in its jail. 0 or -errno with `o` filled. */
int child_start(struct child *ch, const struct router_options *options,
		struct outcome *o);

/*
 * Hands over a configuration and the sockets of `set` that `old` (NULL: none)
 * does not have. When it returns 0 the router has built all of it, and
 * nothing is in force yet. Else `o` says why.
 */
int child_prepare(struct child *ch, const struct config *c,
		  unsigned int generation, const struct listener_set *set,
		  const struct listener_set *old, struct outcome *o);
int child_swap(struct child *ch, struct outcome *o);

/* Passes a client of the control socket on; `fd` stays the caller's. */
int child_pass_status(struct child *ch, int fd, unsigned int generation,
		      unsigned int restarts);
int child_drain(struct child *ch, uint64_t deadline_ms);

/*
 * Asks whether it is alive, unless an answer is still due. Returns how many
 * calls in a row it has left unanswered.
 */
unsigned int child_ping(struct child *ch);

/* After it was reaped, or to make an end of it. */
void child_kill(struct child *ch);
void child_forget(struct child *ch);

#endif
