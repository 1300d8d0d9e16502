// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "validate.h"

/* One way to one route: a line of three names and two protocols has six. */
struct key {
	const char *pattern, *alpn; /* alpn "": any */
	unsigned int transports;
	size_t order;
	const struct config_location *at;
};

static int compare_routes(const struct key *a, const struct key *b)
{
	int d = strcmp(a->pattern, b->pattern);

	if (!d)
		d = strcmp(a->alpn, b->alpn);
	return d ? d : (int)a->transports - (int)b->transports;
}

static int compare(const void *x, const void *y)
{
	const struct key *a = x, *b = y;
	int d = compare_routes(a, b);

	return d ? d : (a->order > b->order) - (a->order < b->order);
}

static size_t count(const struct config *c)
{
	size_t nr = 0;
	unsigned int i;

	for (i = 0; i < c->nr_routes; i++) {
		const struct config_route *r = &c->routes[i];

		nr += (size_t)r->nr_patterns * (r->nr_alpns ? r->nr_alpns : 1);
	}
	return nr;
}

static struct key *add(struct key *key, const struct config_route *r,
		       unsigned int pattern)
{
	unsigned int i = 0;

	do {
		*key = (struct key){
			.pattern = r->patterns[pattern],
			.alpn = r->nr_alpns ? r->alpns[i] : "",
			.transports = r->transports,
			.at = &r->pattern_at[pattern],
		};
		key++;
	} while (++i < r->nr_alpns);
	return key;
}

static void collect(const struct config *c, struct key *keys)
{
	struct key *key = keys;
	unsigned int i, j;

	for (i = 0; i < c->nr_routes; i++)
		for (j = 0; j < c->routes[i].nr_patterns; j++)
			key = add(key, &c->routes[i], j);
	while (key-- > keys)
		key->order = (size_t)(key - keys);
}

static void report(struct config_builder *b, const struct key *first,
		   const struct key *second)
{
	static const char *const transports[] = {
		[TRANSPORT_TCP] = " tcp",
		[TRANSPORT_QUIC] = " quic",
		[TRANSPORT_TCP | TRANSPORT_QUIC] = "",
	};
	bool has_alpn = *second->alpn;

	config_error(b, second->at, "route %s%s%s%s was given before, at %s",
		     config_quote(b, second->pattern),
		     has_alpn ? " alpn " : "",
		     has_alpn ? config_quote(b, second->alpn) : "",
		     transports[second->transports],
		     config_place(b, first->at));
}

void config_find_duplicate_routes(struct config_builder *b)
{
	size_t i, first = 0, nr = count(b->config);
	struct key *keys;

	if (!nr)
		return;
	keys = calloc(nr, sizeof(*keys));
	if (!keys) {
		b->is_out_of_memory = true;
		return;
	}
	collect(b->config, keys);
	qsort(keys, nr, sizeof(*keys), compare);
	for (i = 1; i < nr && !config_has_given_up(b); i++) {
		if (compare_routes(&keys[first], &keys[i]))
			first = i;
		else
			report(b, &keys[first], &keys[i]);
	}
	free(keys);
}
