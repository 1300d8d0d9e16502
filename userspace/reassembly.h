/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first bytes of one direction of a captured TCP connection, put in order.
 * Where copies of a byte differ, the one that comes first in order is kept, as
 * a receiver would.
 */
#ifndef HEADGATE_REASSEMBLY_H
#define HEADGATE_REASSEMBLY_H

#include "span.h"

/* Enough for the largest hello in records of a single byte. */
#define REASSEMBLY_MAX (256u << 10)
/* Segments that wait for one before them. */
#define REASSEMBLY_LATER_MAX 1024

struct reassembly_chunk;

/* Zero to begin with. */
struct reassembly {
	uint32_t base;	  /* sequence number of bytes[0] */
	bool has_base;	  /* some number; the lowest seen so far */
	bool is_anchored; /* the number of the very first byte */
	uint8_t *bytes;	  /* the part without a gap */
	size_t len, size;
	struct reassembly_chunk *later; /* by offset from the base */
	unsigned int nr_later;
	size_t later_bytes;
};

/* The stream begins here: the handshake was seen. 0 or -ENOMEM. */
int reassembly_anchor(struct reassembly *r, uint32_t seq);

/* 0; -ENOMEM; -ENOSPC: not kept, it lies too far ahead, or too many wait. */
int reassembly_add(struct reassembly *r, uint32_t seq, struct span payload);

/* The memory that it holds, in bytes. */
size_t reassembly_memory(const struct reassembly *r);

/* Frees all, and makes it as new. */
void reassembly_fini(struct reassembly *r);

#endif
