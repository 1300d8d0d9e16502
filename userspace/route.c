// SPDX-License-Identifier: GPL-2.0-or-later
#include "route.h"

#include "route_table.h"
#include "tls.h"

/*
 *	a.b.example.org is hashed once, from its end:
 *		org, example.org, b.example.org, a.b.example.org
 *	and then, for each ALPN that client and table share, and for none:
 *		a.b.example.org, *.b.example.org, *.example.org, *.org, *
 *
 * leaving out each depth at which that ALPN has no wildcard. So the cost
 * depends on the name and on what the client offers, never on the number of
 * routes.
 */

/* A suffix of the name that some wildcard may have. */
struct level {
	struct span text;
	uint64_t hash;
	unsigned int depth;
};

struct query {
	struct span name;
	uint64_t hash;
	unsigned int transport;
	unsigned int nr_levels; /* the shortest suffix first */
	struct level levels[ROUTE_DEPTH_MAX];
};

static void split_name(const struct route_table *t, struct query *q)
{
	const uint8_t *p = q->name.p;
	uint64_t hash = ROUTE_HASH_INIT;
	unsigned int depth = 1;
	size_t i;

	for (i = q->name.len; i-- > 0;) {
		/* "*." stands for one label at least: not for an empty one */
		if (p[i] == '.' && i > 0 && depth <= ROUTE_DEPTH_MAX) {
			if (route_has_bit(t->wildcard_depths, depth))
				q->levels[q->nr_levels++] = (struct level){
					span_of(p + i + 1, q->name.len - i - 1),
					hash,
					depth,
				};
			depth++;
		}
		hash = route_hash_byte(hash, p[i]);
	}
	q->hash = hash;
}

/* The first of the group that serves the transport; `group`: index + 1. */
static const struct route *pick(const struct route_table *t, uint32_t group,
				unsigned int transport)
{
	const struct route_node *n;

	if (!group)
		return NULL;
	for (n = &t->nodes[group - 1];; n++) {
		if (n->route.transports & transport)
			return &n->route;
		if (n->is_last)
			return NULL;
	}
}

/* Exact, then the longest wildcard, then "*". */
static const struct route *find_name(const struct route_table *t,
				     const struct query *q, uint32_t protocol)
{
	const struct route_protocol *p = &t->protocols[protocol];
	struct route_key k = { q->name, q->hash, protocol, false };
	const struct route *r = NULL;
	unsigned int i;

	if (p->has_names)
		r = pick(t, route_table_slot(t, &k)->node, q->transport);
	k.is_wildcard = true;
	for (i = q->nr_levels; !r && i-- > 0;) {
		const struct level *l = &q->levels[i];

		if (!route_has_bit(p->wildcard_depths, l->depth))
			continue;
		k.text = l->text;
		k.text_hash = l->hash;
		r = pick(t, route_table_slot(t, &k)->node, q->transport);
	}
	return r ? r : pick(t, p->any, q->transport);
}

/*
 * A hello has room for 16,000 offers, the same ones again if the client wills.
 * Each is looked up once (of the table's first 256, which is more than IANA
 * has registered), and when all of the table's were seen the rest is left.
 */
static const struct route *find_offered(const struct route_table *t,
					const struct query *q, struct span alpn)
{
	uint32_t left = t->nr_protocols - 1, id;
	const struct route *r = NULL;
	uint64_t seen[4] = { 0 };
	struct span offer;

	while (!r && left && tls_next_alpn(&alpn, &offer)) {
		if (!route_has_bit(t->alpn_lengths, offer.len))
			continue;
		id = *route_table_protocol(t, offer);
		if (!id || (id < 256 && route_has_bit(seen, id)))
			continue;
		if (id < 256) {
			route_set_bit(seen, id);
			left--;
		}
		r = find_name(t, q, id);
	}
	return r;
}

const struct route *route_find(const struct route_table *t, struct span name,
			       struct span alpn, unsigned int transport)
{
	const struct route *r;
	struct query q;

	/* piecemeal: most of the levels are never touched */
	q.name = name;
	q.transport = transport;
	q.nr_levels = 0;
	split_name(t, &q);
	r = find_offered(t, &q, alpn);
	return r ? r : find_name(t, &q, 0);
}
