/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pipes for splice(2), lent to a direction while bytes move and given back
 * as soon as it is idle, so that descriptors and kernel memory follow the
 * busy connections and not the open ones.
 */
#ifndef HEADGATE_PIPE_H
#define HEADGATE_PIPE_H

#include <stdint.h>

struct pipe {
	struct pipe *next; /* in the pool */
	int read_fd, write_fd;
	uint32_t size, bytes; /* what it can hold and what it holds */
};

struct pipe_pool {
	struct pipe *idle;
	unsigned int nr_idle;
	uint64_t retry_at_ms; /* no use asking the kernel before */
};

/* An empty pipe, or NULL: the descriptors or the user's pipe pages ran out. */
struct pipe *pipe_get(struct pipe_pool *p, uint64_t now_ms);
/* Closes it instead when bytes are still in it. */
void pipe_put(struct pipe_pool *p, struct pipe *pipe);
/* Closes the idle ones; the pool may go on. */
void pipe_pool_trim(struct pipe_pool *p);

#endif
