/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes that had to be kept: the beginning of a ClientHello, or what a slow
 * peer has not taken yet. An ordinary idle connection has none.
 */
#ifndef HEADGATE_BUFFER_H
#define HEADGATE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "span.h"

/*
 * The largest PROXY header (64 KiB) and behind it the largest ClientHello
 * (32 KiB) in records of one byte each (six on the wire) fit.
 */
#define BUFFER_READ  65536
#define BUFFER_LARGE (4 * BUFFER_READ + 4096)

struct buffer {
	struct buffer *next; /* in the pool */
	uint32_t start, end, size;
	uint8_t bytes[];
};

#define BUFFER_SMALL (4096 - sizeof(struct buffer)) /* a page with its head */

/*
 * One worker's; keeps some of each size so that bursts allocate little. What
 * it does not keep goes back to the kernel, page by page, and not into a heap.
 */
struct buffer_pool {
	struct buffer *small, *large;
	unsigned int nr_small, nr_large;
};

/* At least `size` bytes (up to BUFFER_LARGE), empty. NULL: out of memory. */
struct buffer *buffer_get(struct buffer_pool *p, size_t size);
void buffer_put(struct buffer_pool *p, struct buffer *b);
/* Gives back what is kept; the pool may go on. */
void buffer_pool_trim(struct buffer_pool *p);

static inline struct span buffer_span(const struct buffer *b)
{
	return span_of(b->bytes + b->start, b->end - b->start);
}

/*
 * Appends to *b, which may be NULL, and moves to a larger one where needed.
 * -ENOMEM; -ENOBUFS when there would be more than BUFFER_LARGE.
 */
int buffer_append(struct buffer_pool *p, struct buffer **b, struct span bytes);

#endif
