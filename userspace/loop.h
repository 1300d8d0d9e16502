/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a connection needs of its worker: the clock of this turn, epoll,
 * timers, pools, counters. One thread's own; nothing here is shared.
 */
#ifndef HEADGATE_LOOP_H
#define HEADGATE_LOOP_H

#include "buffer.h"
#include "log.h"
#include "pipe.h"
#include "snapshot.h"
#include "stats.h"
#include "timer.h"
#include "tls.h"

struct conn;

struct loop {
	int epoll_fd;
	unsigned int index; /* of the worker */
	uint64_t now_ms;    /* CLOCK_MONOTONIC, read once a turn */
	const struct snapshot *snapshot; /* of this turn */
	struct timer_wheel timers;
	struct buffer_pool buffers;
	struct pipe_pool pipes;
	struct stats *stats;
	struct stats_worker *counters;
	struct log_ring *log;

	/* the table of connections, and what to do with some of them */
	struct conn *conns;
	unsigned int nr_conns, nr_untouched;
	struct conn *free;  /* may be used again */
	struct conn *ended; /* in this turn: events of it may still come */
	struct conn *ready; /* had more to do than its share */
	struct conn *live;

	uint64_t serial;  /* of connections */
	uint64_t boot_id; /* random, so that serials differ over restarts */
	uint64_t refusals_logged_s, nr_refusals_logged; /* for sampling */

	uint8_t scratch[BUFFER_READ];
	struct tls_scratch hello;
};

#endif
