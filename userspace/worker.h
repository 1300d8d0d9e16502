/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One core's loop: a thread, an epoll instance, the connections that it
 * accepted. It reads snapshot_current at each turn, and follows its listeners.
 */
#ifndef HEADGATE_WORKER_H
#define HEADGATE_WORKER_H

#include <stdbool.h>

#include "log.h"
#include "stats.h"

struct worker;

struct worker_options {
	unsigned int index;   /* which fd of each listener is its own */
	unsigned int nr_workers;
	unsigned int nr_connections; /* size of its connection table */
	struct stats *stats;
	struct log_ring *log;
};

/* NULL with errno set: memory or descriptors. Reserves all that it needs. */
struct worker *worker_new(const struct worker_options *o);

/*
 * 0 or -errno. There must be a snapshot; the thread registers itself with
 * liburcu.
 */
int worker_start(struct worker *w);

/* Wakes the loop so that it looks at snapshot_current (or at the drain). */
void worker_wake(struct worker *w);

/*
 * No more connections: takes in what its listeners have queued, closes them,
 * and ends when its connections have ended or `deadline_ms` (CLOCK_MONOTONIC)
 * has passed, closing what is left. worker_join() waits for the end.
 */
void worker_drain(struct worker *w, uint64_t deadline_ms);
bool worker_has_ended(const struct worker *w);
void worker_join(struct worker *w);
void worker_free(struct worker *w);

#endif
