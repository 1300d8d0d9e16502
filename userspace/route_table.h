/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the route table lies in memory: between route_table.c, which builds it,
 * and route.c, which looks things up in it. Nobody else includes this.
 *
 * A node is one (pattern, ALPN, transports) of one line. Nodes are sorted, so
 * that those of one (pattern, ALPN), its group, are neighbours, a route for
 * one transport in front of one for both. The head of each group stands in an
 * open-addressing table, under the whole name or what follows "*.".
 *
 * The hash needs no secret: what the table holds comes from the configuration
 * alone. A client chooses what is looked up, and no look-up goes further than
 * the longest run of full slots.
 */
#ifndef HEADGATE_ROUTE_TABLE_H
#define HEADGATE_ROUTE_TABLE_H

#include "route.h"

struct route_node {
	struct route route;
	uint32_t protocol; /* index into protocols[] */
	uint32_t text_len; /* of the name, or of what follows "*." */
	bool is_wildcard;
	bool is_last; /* of its group */
	/* most texts fit: in a large table each pointer is a cache miss */
	char text[46];
};

struct route_slot {
	uint32_t tag;
	uint32_t node; /* index + 1; 0: free */
};

/* Labels of a suffix: a name of 253 bytes has 127, so two words of bits. */
#define ROUTE_DEPTH_MAX 127

/* An ALPN that some route asks for; protocols[0] is "none asked for". */
struct route_protocol {
	struct span alpn;
	uint32_t any; /* the group of "*": index + 1 */
	bool has_names;
	uint64_t wildcard_depths[2];
};

struct route_table {
	struct route_node *nodes;
	uint32_t nr_nodes;
	uint32_t slot_mask;
	struct route_slot *slots;
	struct route_protocol *protocols;
	uint32_t nr_protocols;
	uint32_t protocol_mask;
	uint32_t *protocol_slots;    /* index into protocols[]; 0: free */
	uint64_t alpn_lengths[4];    /* most offers are sorted out here */
	uint64_t wildcard_depths[2]; /* of all protocols together */
};

struct route_key {
	struct span text;
	uint64_t text_hash;
	uint32_t protocol;
	bool is_wildcard;
};

/* The slot of the key, or the free one where it would be. */
struct route_slot *route_table_slot(const struct route_table *t,
				    const struct route_key *k);
/* Likewise, for an ALPN. */
uint32_t *route_table_protocol(const struct route_table *t, struct span alpn);

static inline bool route_has_bit(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static inline void route_set_bit(uint64_t *bits, size_t i)
{
	bits[i / 64] |= 1ULL << i % 64;
}

/* FNV-1a, from the end to the front: the way in which suffixes grow. */
#define ROUTE_HASH_INIT 0xcbf29ce484222325ULL

static inline uint64_t route_hash_byte(uint64_t hash, uint8_t byte)
{
	return (hash ^ byte) * 0x100000001b3ULL;
}

#endif
