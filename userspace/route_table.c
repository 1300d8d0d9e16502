// SPDX-License-Identifier: GPL-2.0-or-later
#include "route_table.h"

#include <stdlib.h>

static uint64_t hash_text(struct span text)
{
	uint64_t hash = ROUTE_HASH_INIT;
	size_t i;

	for (i = text.len; i-- > 0;)
		hash = route_hash_byte(hash, text.p[i]);
	return hash;
}

static uint64_t hash_key(const struct route_key *k)
{
	uint64_t h = k->text_hash + 2 * (uint64_t)k->protocol + k->is_wildcard;

	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

static struct span text_of(const struct route_node *n)
{
	const char *text = n->route.pattern + (n->is_wildcard ? 2 : 0);

	if (n->text_len <= sizeof(n->text))
		text = n->text;
	return span_of(text, n->text_len);
}

static bool has_key(const struct route_node *n, const struct route_key *k)
{
	return n->protocol == k->protocol && n->is_wildcard == k->is_wildcard &&
	       span_equal(text_of(n), k->text);
}

struct route_slot *route_table_slot(const struct route_table *t,
				    const struct route_key *k)
{
	uint64_t hash = hash_key(k);
	uint32_t i = (uint32_t)hash;

	for (;; i++) {
		struct route_slot *s = &t->slots[i & t->slot_mask];

		if (!s->node)
			return s;
		if (s->tag == tag_of(hash) &&
		    has_key(&t->nodes[s->node - 1], k))
			return s;
	}
}

uint32_t *route_table_protocol(const struct route_table *t, struct span alpn)
{
	uint32_t i = (uint32_t)(hash_text(alpn) >> 32);

	for (;; i++) {
		uint32_t *slot = &t->protocol_slots[i & t->protocol_mask];

		if (!*slot || span_equal(t->protocols[*slot].alpn, alpn))
			return slot;
	}
}

static uint32_t intern_alpn(struct route_table *t, const char *alpn)
{
	struct span text;
	uint32_t *slot;

	if (!alpn)
		return 0;
	text = span_of_text(alpn);
	slot = route_table_protocol(t, text);
	if (!*slot) {
		*slot = t->nr_protocols++;
		t->protocols[*slot].alpn = text;
		if (text.len <= UINT8_MAX)
			route_set_bit(t->alpn_lengths, text.len);
	}
	return *slot;
}

/* A backend that can not take QUIC makes its routes serve TCP alone. */
static unsigned int served(const struct config *c, const struct config_route *r)
{
	if (r->target.kind != TARGET_BACKEND)
		return r->transports;
	return r->transports & c->backends[r->target.backend].transports;
}

static void add_node(struct route_table *t, const struct config *c,
		     const struct config_route *line, const char *pattern,
		     const char *alpn)
{
	struct route_node *n = &t->nodes[t->nr_nodes];
	bool is_wildcard = !strncmp(pattern, "*.", 2);
	const char *text = pattern + (is_wildcard ? 2 : 0);
	unsigned int transports = served(c, line);

	if (!transports)
		return;
	n->route.line = line;
	n->route.pattern = pattern;
	n->route.alpn = alpn;
	n->route.transports = transports;
	n->route.target = line->target;
	n->protocol = intern_alpn(t, alpn);
	n->is_wildcard = is_wildcard;
	n->text_len = (uint32_t)strlen(text);
	if (n->text_len <= sizeof(n->text))
		memcpy(n->text, text, n->text_len);
	t->nr_nodes++;
}

static void add_nodes(struct route_table *t, const struct config *c)
{
	const struct config_route *r;
	unsigned int i, j;

	for (r = c->routes; r < c->routes + c->nr_routes; r++) {
		for (i = 0; i < r->nr_patterns; i++) {
			if (!r->nr_alpns)
				add_node(t, c, r, r->patterns[i], NULL);
			for (j = 0; j < r->nr_alpns; j++)
				add_node(t, c, r, r->patterns[i], r->alpns[j]);
		}
	}
}

static bool is_same_group(const struct route_node *a,
			  const struct route_node *b)
{
	return a->protocol == b->protocol &&
	       !strcmp(a->route.pattern, b->route.pattern);
}

/*
 * Inside a group: what was written for one transport alone, then the earlier
 * line (the lines are in one array).
 */
static int compare_nodes(const void *x, const void *y)
{
	const struct route_node *a = x, *b = y;
	const struct config_route *la = a->route.line, *lb = b->route.line;
	int diff = strcmp(a->route.pattern, b->route.pattern);

	if (diff)
		return diff;
	if (a->protocol != b->protocol)
		return a->protocol < b->protocol ? -1 : 1;
	diff = __builtin_popcount(la->transports) -
	       __builtin_popcount(lb->transports);
	if (diff)
		return diff;
	return (la > lb) - (la < lb);
}

static unsigned int count_labels(struct span text)
{
	unsigned int n = 1;
	size_t i;

	for (i = 0; i < text.len; i++)
		n += text.p[i] == '.';
	return n;
}

static void add_group(struct route_table *t, uint32_t head)
{
	const struct route_node *n = &t->nodes[head];
	struct route_protocol *p = &t->protocols[n->protocol];
	struct span text = text_of(n);
	struct route_key k = {
		text,
		hash_text(text),
		n->protocol,
		n->is_wildcard,
	};
	unsigned int depth = count_labels(text);

	if (!strcmp(n->route.pattern, "*")) {
		p->any = head + 1;
		return;
	}
	if (!n->is_wildcard) {
		p->has_names = true;
	} else if (depth <= ROUTE_DEPTH_MAX) {
		route_set_bit(p->wildcard_depths, depth);
		route_set_bit(t->wildcard_depths, depth);
	}
	*route_table_slot(t, &k) = (struct route_slot){
		.tag = tag_of(hash_key(&k)),
		.node = head + 1,
	};
}

static void add_groups(struct route_table *t)
{
	uint32_t i;

	for (i = 0; i < t->nr_nodes; i++) {
		struct route_node *n = &t->nodes[i];

		n->is_last = i + 1 == t->nr_nodes || !is_same_group(n, n + 1);
		if (i == 0 || n[-1].is_last)
			add_group(t, i);
	}
}

/* At most half full. */
static uint32_t table_size(uint32_t nr_entries)
{
	uint32_t size = 2;

	while (size < 2 * nr_entries)
		size *= 2;
	return size;
}

static bool allocate(struct route_table *t, const struct config *c)
{
	uint32_t nr_nodes = 1, nr_protocols = 1, i;

	for (i = 0; i < c->nr_routes; i++) {
		const struct config_route *r = &c->routes[i];

		nr_nodes += r->nr_patterns * (r->nr_alpns ? r->nr_alpns : 1);
		nr_protocols += r->nr_alpns;
	}
	t->slot_mask = table_size(nr_nodes) - 1;
	t->protocol_mask = table_size(nr_protocols) - 1;
	t->nr_protocols = 1;
	t->nodes = calloc(nr_nodes, sizeof(*t->nodes));
	t->slots = calloc(t->slot_mask + 1, sizeof(*t->slots));
	t->protocols = calloc(nr_protocols, sizeof(*t->protocols));
	t->protocol_slots =
		calloc(t->protocol_mask + 1, sizeof(*t->protocol_slots));
	return t->nodes && t->slots && t->protocols && t->protocol_slots;
}

struct route_table *route_table_new(const struct config *c)
{
	struct route_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (!allocate(t, c)) {
		route_table_free(t);
		return NULL;
	}
	add_nodes(t, c);
	if (t->nr_nodes)
		qsort(t->nodes, t->nr_nodes, sizeof(*t->nodes), compare_nodes);
	add_groups(t);
	return t;
}

void route_table_free(struct route_table *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->slots);
	free(t->protocols);
	free(t->protocol_slots);
	free(t);
}
