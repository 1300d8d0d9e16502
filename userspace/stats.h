/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters in memory that the supervisor shares with the router, one block a
 * worker: the worker adds without locking, everybody else only reads, and a
 * restart of the router loses nothing.
 */
#ifndef HEADGATE_STATS_H
#define HEADGATE_STATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../bpf/reasons.h"

typedef _Atomic uint64_t stats_counter;

struct stats_worker {
	stats_counter accepted;	   /* connections, ever */
	stats_counter connections; /* now; the worker's own gauge */
	stats_counter bytes_in;	   /* from clients to servers */
	stats_counter bytes_out;   /* from servers to clients */
	stats_counter engine_rw;   /* connections now on each engine */
	stats_counter engine_splice;
	stats_counter log_lost; /* lines that found the ring full */
	stats_counter refused[NR_REASONS];
} __attribute__((aligned(64)));

#define STATS_WORKERS_MAX 256

struct stats {
	uint64_t started_at_ms;	      /* CLOCK_MONOTONIC, of the supervisor */
	_Atomic uint32_t connections; /* all workers; what the cap is held to */
	unsigned int nr_workers;
	struct stats_worker workers[];
};

/* Shared and anonymous, zeroed. NULL: out of memory. */
struct stats *stats_new(unsigned int nr_workers);
void stats_free(struct stats *s);

/* Zeroes the gauges, since a new router starts with no connection. */
void stats_reset_gauges(struct stats *s);

/* Only the owner of the block calls this: a load and a store, no lock. */
static inline void stats_add(stats_counter *c, uint64_t n)
{
	uint64_t old = atomic_load_explicit(c, memory_order_relaxed);

	atomic_store_explicit(c, old + n, memory_order_relaxed);
}

static inline void stats_sub(stats_counter *c, uint64_t n)
{
	stats_add(c, 0 - n);
}

/* The sum over all workers of the counter at this offset of the block. */
uint64_t stats_sum(const struct stats *s, size_t offset);

/* The name (as in JSON, logs and metrics) and the text of a reason. */
const char *reason_name(enum reason r);
const char *reason_text(enum reason r);

#endif
