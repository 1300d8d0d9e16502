// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "route.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { TCP = TRANSPORT_TCP, QUIC = TRANSPORT_QUIC, BOTH = TCP | QUIC };

/* Backend 0 takes both transports, backend 1 TCP alone. */
static struct config_backend backends[] = {
	{ .name = "both", .transports = BOTH },
	{ .name = "tcp", .transports = TCP },
};

/* One line each, with up to three patterns and protocols. */
struct line {
	char *patterns[4];
	char *alpns[4];
	unsigned int transports;
	enum config_target_kind kind;
	unsigned int backend;
};

#define MAX_LINES 32

struct fixture {
	struct config config;
	struct config_route routes[MAX_LINES];
	struct route_table *table;
};

static void setup(struct fixture *f, struct line *lines, unsigned int nr)
{
	unsigned int i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < nr; i++) {
		struct config_route *r = &f->routes[i];

		r->patterns = lines[i].patterns;
		while (r->nr_patterns < 4 && r->patterns[r->nr_patterns])
			r->nr_patterns++;
		r->alpns = lines[i].alpns;
		while (r->nr_alpns < 4 && r->alpns[r->nr_alpns])
			r->nr_alpns++;
		r->transports =
			lines[i].transports ? lines[i].transports : BOTH;
		r->target.kind = lines[i].kind ? lines[i].kind : TARGET_BACKEND;
		r->target.backend = lines[i].backend;
	}
	f->config.routes = f->routes;
	f->config.nr_routes = nr;
	f->config.backends = backends;
	f->config.nr_backends = COUNT(backends);
	f->table = route_table_new(&f->config);
	assert_non_null(f->table);
}

/* "h2 http/1.1" to the form on the wire. */
static size_t encode_alpn(const char *names, uint8_t *out)
{
	size_t len = 0, n;

	for (; *names; names += n + (names[n] == ' ')) {
		n = strcspn(names, " ");
		out[len++] = (uint8_t)n;
		memcpy(out + len, names, n);
		len += n;
	}
	return len;
}

/* Copies of the exact size: a sanitizer then sees a byte too many. */
static const struct route *find(const struct fixture *f, const char *name,
				const char *alpns, unsigned int transport)
{
	uint8_t wire[512], *alpn_copy, *name_copy;
	size_t len = encode_alpn(alpns, wire);
	const struct route *r;

	alpn_copy = malloc(len + !len);
	name_copy = malloc(strlen(name) + !*name);
	assert_true(alpn_copy && name_copy);
	memcpy(alpn_copy, wire, len);
	memcpy(name_copy, name, strlen(name));
	r = route_find(f->table, span_of(name_copy, strlen(name)),
		       span_of(alpn_copy, len), transport);
	free(alpn_copy);
	free(name_copy);
	return r;
}

/* The number of the line that wins, counted from 0; -1: the default. */
static int winner(const struct fixture *f, const char *name, const char *alpns,
		  unsigned int transport)
{
	const struct route *r = find(f, name, alpns, transport);

	if (!r)
		return -1;
	assert_true(r->transports & transport);
	assert_memory_equal(&r->target, &r->line->target, sizeof(r->target));
	return (int)(r->line - f->routes);
}

static void names(void **state)
{
	struct line lines[] = {
		{ .patterns = { "example.org", "www.example.org" } },
		{ .patterns = { "*.apps.example.org" } },
		{ .patterns = { "*.example.org" } },
		{ .patterns = { "*.b.apps.example.org" } },
		{ .patterns = { "c.apps.example.org" } },
		{ .patterns = { "*.com" } },
		{ .patterns = { "localhost" } },
	};
	struct fixture f;

	(void)state;
	setup(&f, lines, COUNT(lines));
	assert_int_equal(winner(&f, "example.org", "", TCP), 0);
	assert_int_equal(winner(&f, "www.example.org", "", TCP), 0);
	assert_string_equal(find(&f, "www.example.org", "", TCP)->pattern,
			    "www.example.org");
	/* one label or more */
	assert_int_equal(winner(&f, "a.apps.example.org", "", TCP), 1);
	assert_int_equal(winner(&f, "x.y.z.apps.example.org", "", TCP), 1);
	/* not none, and not a part of one: both fall to the shorter */
	assert_int_equal(winner(&f, "apps.example.org", "", TCP), 2);
	assert_int_equal(winner(&f, "myapps.example.org", "", TCP), 2);
	assert_int_equal(winner(&f, "aexample.org", "", TCP), -1);
	/* the longest wildcard */
	assert_int_equal(winner(&f, "a.b.apps.example.org", "", TCP), 3);
	assert_int_equal(winner(&f, "b.apps.example.org", "", TCP), 1);
	/* exact beats it, for itself alone */
	assert_int_equal(winner(&f, "c.apps.example.org", "", TCP), 4);
	assert_int_equal(winner(&f, "a.c.apps.example.org", "", TCP), 1);
	assert_int_equal(winner(&f, "a.com", "", TCP), 5);
	assert_int_equal(winner(&f, "com", "", TCP), -1);
	assert_int_equal(winner(&f, "localhost", "", QUIC), 6);
	assert_int_equal(winner(&f, "a.localhost", "", TCP), -1);
	assert_int_equal(winner(&f, "", "", TCP), -1);
	assert_int_equal(winner(&f, "org", "", TCP), -1);
	assert_int_equal(winner(&f, "example.org.evil.net", "", TCP), -1);
	/* what the parser would not let in does not match by accident */
	assert_int_equal(winner(&f, ".example.org", "", TCP), -1);
	assert_int_equal(winner(&f, ".", "", TCP), -1);
	assert_int_equal(winner(&f, "*.example.org", "", TCP), 2);
	route_table_free(f.table);
}

static void any_name(void **state)
{
	struct line lines[] = {
		{ .patterns = { "*" }, .alpns = { "acme-tls/1" } },
		{ .patterns = { "example.org" } },
		{ .patterns = { "*" }, .transports = QUIC },
		{ .patterns = { "*.org" }, .alpns = { "acme-tls/1" } },
	};
	struct fixture f;

	(void)state;
	setup(&f, lines, COUNT(lines));
	assert_int_equal(winner(&f, "a.com", "acme-tls/1", TCP), 0);
	assert_int_equal(winner(&f, "", "acme-tls/1", TCP), 0);
	assert_int_equal(winner(&f, "", "", TCP), -1);
	assert_int_equal(winner(&f, "", "", QUIC), 2);
	assert_int_equal(winner(&f, "a.com", "h2", QUIC), 2);
	assert_int_equal(winner(&f, "example.org", "h2", QUIC), 1);
	/* a route with an offered ALPN first, however vague its name */
	assert_int_equal(winner(&f, "example.org", "acme-tls/1", TCP), 3);
	assert_int_equal(winner(&f, "org", "acme-tls/1", TCP), 0);
	route_table_free(f.table);
}

static void alpn_order(void **state)
{
	struct line lines[] = {
		{ .patterns = { "a.org" }, .alpns = { "h2" } },
		{ .patterns = { "*" }, .alpns = { "h3", "wg" } },
		{ .patterns = { "a.org" } },
		{ .patterns = { "*.org" }, .alpns = { "h3" } },
		{ .patterns = { "b.org" } },
	};
	struct fixture f;

	(void)state;
	setup(&f, lines, COUNT(lines));
	/* the client's order decides before the name does */
	assert_int_equal(winner(&f, "a.org", "wg h2", TCP), 1);
	assert_string_equal(find(&f, "a.org", "wg h2", TCP)->alpn, "wg");
	assert_int_equal(winner(&f, "a.org", "h2 wg", TCP), 0);
	assert_int_equal(winner(&f, "a.org", "h3 h2", TCP), 3);
	/* offers that no route serves here are passed over */
	assert_int_equal(winner(&f, "b.org", "h2 wg", TCP), 1);
	assert_int_equal(winner(&f, "b.org", "h2", TCP), 4);
	assert_int_equal(winner(&f, "a.org", "http/1.1 x h2", TCP), 0);
	assert_int_equal(winner(&f, "a.org", "", TCP), 2);
	assert_null(find(&f, "a.org", "", TCP)->alpn);
	assert_int_equal(winner(&f, "c.com", "h2", TCP), -1);
	/* bytes, not text: case and length count */
	assert_int_equal(winner(&f, "a.org", "H2", TCP), 2);
	assert_int_equal(winner(&f, "a.org", "h", TCP), 2);
	assert_int_equal(winner(&f, "a.org", "h22", TCP), 2);
	route_table_free(f.table);
}

static void transports(void **state)
{
	struct line lines[] = {
		{ .patterns = { "a.org" } },
		{ .patterns = { "a.org" }, .transports = QUIC },
		{ .patterns = { "b.org" }, .transports = TCP },
		{ .patterns = { "*.org" } },
		{ .patterns = { "*.org" }, .transports = QUIC },
		/* a server that takes TCP alone */
		{ .patterns = { "c.org" }, .backend = 1 },
		{ .patterns = { "d.org" }, .backend = 1, .transports = QUIC },
		/* these need no server */
		{ .patterns = { "e.org" }, .kind = TARGET_REFUSE },
		{ .patterns = { "f.org" }, .kind = TARGET_DROP, .backend = 1 },
		/* narrowed by its server, it is still not "TCP alone" */
		{ .patterns = { "g.org" }, .backend = 1 },
		{ .patterns = { "g.org" }, .transports = TCP },
	};
	struct fixture f;

	(void)state;
	setup(&f, lines, COUNT(lines));
	assert_int_equal(winner(&f, "a.org", "", TCP), 0);
	assert_int_equal(winner(&f, "a.org", "", QUIC), 1);
	assert_int_equal(winner(&f, "b.org", "", TCP), 2);
	/* the better name does not serve it: the next one does */
	assert_int_equal(winner(&f, "b.org", "", QUIC), 4);
	assert_int_equal(winner(&f, "x.org", "", TCP), 3);
	assert_int_equal(winner(&f, "x.org", "", QUIC), 4);
	assert_int_equal(winner(&f, "c.org", "", TCP), 5);
	assert_int_equal(find(&f, "c.org", "", TCP)->transports, TCP);
	assert_int_equal(winner(&f, "c.org", "", QUIC), 4);
	assert_int_equal(winner(&f, "d.org", "", QUIC), 4);
	assert_int_equal(winner(&f, "d.org", "", TCP), 3);
	assert_int_equal(winner(&f, "e.org", "", TCP), 7);
	assert_int_equal(winner(&f, "e.org", "", QUIC), 7);
	assert_int_equal(winner(&f, "f.org", "", QUIC), 8);
	assert_int_equal(find(&f, "f.org", "", QUIC)->target.kind, TARGET_DROP);
	assert_int_equal(winner(&f, "g.org", "", TCP), 10);
	route_table_free(f.table);
}

static void empty_table(void **state)
{
	struct line quic_to_tcp[] = {
		{ .patterns = { "a.org" },
		  .alpns = { "h3" },
		  .backend = 1,
		  .transports = QUIC },
	};
	struct fixture f;

	(void)state;
	setup(&f, NULL, 0);
	assert_int_equal(winner(&f, "a.org", "h2", TCP), -1);
	assert_null(route_find(f.table, (struct span){ 0 }, (struct span){ 0 },
			       TCP));
	route_table_free(f.table);
	setup(&f, quic_to_tcp, 1);
	assert_int_equal(winner(&f, "a.org", "h3", QUIC), -1);
	assert_int_equal(winner(&f, "a.org", "h3", TCP), -1);
	route_table_free(f.table);
	route_table_free(NULL);
}

/* 253 bytes, 127 labels, and what is beyond. */
static void long_names(void **state)
{
	char name[1024], wildcard[1024], longest[256];
	struct line lines[] = {
		{ .patterns = { longest } },
		{ .patterns = { wildcard } },
		{ .patterns = { "*.a" } },
	};
	struct fixture f;
	size_t i, len;

	(void)state;
	memset(longest, 'x', 253);
	longest[253] = '\0';
	for (i = 63; i < 253; i += 64)
		longest[i] = '.';
	for (i = 0; i < sizeof(name) - 1; i++)
		name[i] = i % 2 ? '.' : 'a';
	name[sizeof(name) - 1] = '\0';
	/* "*." and 126 labels: the deepest that a name can reach */
	snprintf(wildcard, sizeof(wildcard), "*.%.251s", name);
	setup(&f, lines, COUNT(lines));
	assert_int_equal(winner(&f, longest, "", TCP), 0);
	longest[0] = 'y';
	assert_int_equal(winner(&f, longest, "", TCP), -1);
	longest[0] = 'x';
	for (len = 1; len < sizeof(name) - 1; len += 2) {
		char cut[1024];

		snprintf(cut, sizeof(cut), "%.*s", (int)len, name);
		assert_int_equal(winner(&f, cut, "", TCP), len < 3     ? -1
							   : len < 253 ? 2
								       : 1);
	}
	route_table_free(f.table);
	/* a pattern that no name has is harmless */
	snprintf(wildcard, sizeof(wildcard), "*.%.901s", name);
	setup(&f, lines, COUNT(lines));
	name[1001] = '\0';
	assert_int_equal(winner(&f, name, "", TCP), 2);
	route_table_free(f.table);
}

/* Around the length up to which a table keeps its own copy of a text. */
static void every_length(void **state)
{
	char exact[256], wildcard[256], name[256];
	struct line lines[] = {
		{ .patterns = { exact } },
		{ .patterns = { wildcard } },
	};
	struct fixture f;
	int len;

	(void)state;
	for (len = 1; len < 100; len++) {
		snprintf(exact, sizeof(exact), "%0*d", len, 7);
		snprintf(wildcard, sizeof(wildcard), "*.%0*d", len, 8);
		setup(&f, lines, COUNT(lines));
		assert_int_equal(winner(&f, exact, "", TCP), 0);
		snprintf(name, sizeof(name), "a.%0*d", len, 8);
		assert_int_equal(winner(&f, name, "", TCP), 1);
		snprintf(name, sizeof(name), "%0*d", len, 6);
		assert_int_equal(winner(&f, name, "", TCP), -1);
		snprintf(name, sizeof(name), "%0*d", len + 1, 7);
		assert_int_equal(winner(&f, name, "", TCP), -1);
		route_table_free(f.table);
	}
}

/* As many offers as a hello holds; the one that counts comes last. */
static void many_offers(void **state)
{
	struct line lines[] = {
		{ .patterns = { "a.org" }, .alpns = { "z", "zz" } },
		{ .patterns = { "b.org" }, .alpns = { "y" } },
	};
	uint8_t alpn[32768];
	struct fixture f;
	size_t i;

	(void)state;
	setup(&f, lines, COUNT(lines));
	for (i = 0; i < sizeof(alpn); i += 2) {
		alpn[i] = 1;
		alpn[i + 1] = i % 4 ? 'x' : 'y';
	}
	assert_null(route_find(f.table, span_of_text("a.org"),
			       span_of(alpn, sizeof(alpn)), TCP));
	alpn[sizeof(alpn) - 1] = 'z';
	assert_non_null(route_find(f.table, span_of_text("a.org"),
				   span_of(alpn, sizeof(alpn)), TCP));
	/* a list that is cut ends where it is cut */
	assert_null(route_find(f.table, span_of_text("a.org"),
			       span_of(alpn, sizeof(alpn) - 1), TCP));
	route_table_free(f.table);
}

/* More protocols in the table than are remembered as seen. */
static void many_protocols(void **state)
{
	static char texts[1000][8];
	char *pointers[1000], *pattern = "*";
	struct config_route line = {
		.patterns = &pattern,
		.nr_patterns = 1,
		.alpns = pointers,
		.nr_alpns = 1000,
		.transports = TCP,
		.target = { .kind = TARGET_REFUSE },
	};
	struct config c = { .routes = &line, .nr_routes = 1 };
	struct route_table *t;
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		snprintf(texts[i], sizeof(texts[i]), "p%u", i);
		pointers[i] = texts[i];
	}
	t = route_table_new(&c);
	assert_non_null(t);
	for (i = 0; i < 1000; i++) {
		uint8_t wire[64];
		const struct route *r;
		size_t len;

		snprintf((char *)wire + 32, 32, "q9 p1000 p%u p1 p999", i);
		len = encode_alpn((char *)wire + 32, wire);
		r = route_find(t, span_of_text("a.org"), span_of(wire, len),
			       TCP);
		assert_non_null(r);
		assert_ptr_equal(r->alpn, texts[i]);
		assert_null(route_find(t, span_of_text("a.org"),
				       span_of(wire, len), QUIC));
	}
	route_table_free(t);
}

/*
 * The oracle: every pattern of every line against the name, in the words of
 * the design, with no index and no order but the comparison of two candidates.
 */
struct candidate {
	int alpn_rank; /* place in the client's list; 1000 if none asked for */
	int name_rank; /* exact 1000, wildcards by labels, "*" 0 */
	bool is_alone; /* for this transport only */
};

static bool is_better(struct candidate a, struct candidate b)
{
	if (a.alpn_rank != b.alpn_rank)
		return a.alpn_rank < b.alpn_rank;
	if (a.name_rank != b.name_rank)
		return a.name_rank > b.name_rank;
	return a.is_alone && !b.is_alone;
}

/* -1: does not match. */
static int rank_name(const char *pattern, const char *name)
{
	size_t tail = strlen(pattern) - 1, len = strlen(name);
	int labels = 0;

	if (!strcmp(pattern, "*"))
		return 0;
	if (pattern[0] != '*')
		return strcmp(pattern, name) ? -1 : 1000;
	/* ".b" at the end, and something in front of it */
	if (len <= tail || strcmp(name + len - tail, pattern + 1))
		return -1;
	for (; *pattern; pattern++)
		labels += *pattern == '.';
	return labels;
}

static int rank_alpn(const char *alpn, const char *offers)
{
	int place = 0;
	size_t n;

	if (!alpn)
		return 1000;
	for (; *offers; offers += n + (offers[n] == ' '), place++) {
		n = strcspn(offers, " ");
		if (n == strlen(alpn) && !memcmp(offers, alpn, n))
			return place;
	}
	return -1;
}

static unsigned int oracle_transports(const struct config_route *r)
{
	if (r->target.kind != TARGET_BACKEND)
		return r->transports;
	return r->transports & backends[r->target.backend].transports;
}

/* Returns whether the line has a candidate, the better one than `best`. */
static bool improve(const struct config_route *r, const char *name,
		    const char *offers, unsigned int transport,
		    struct candidate *best)
{
	unsigned int nr_alpns = r->nr_alpns ? r->nr_alpns : 1, i;
	bool has_improved = false;

	for (i = 0; i < r->nr_patterns * nr_alpns; i++) {
		const char *alpn = r->nr_alpns ? r->alpns[i % nr_alpns] : NULL;
		struct candidate c = {
			.alpn_rank = rank_alpn(alpn, offers),
			.name_rank = rank_name(r->patterns[i / nr_alpns], name),
			.is_alone = r->transports == transport,
		};

		if (c.name_rank < 0 || c.alpn_rank < 0 || !is_better(c, *best))
			continue;
		*best = c;
		has_improved = true;
	}
	return has_improved;
}

static int oracle(const struct fixture *f, const char *name, const char *offers,
		  unsigned int transport)
{
	struct candidate best = { .alpn_rank = 1001 }; /* worse than any */
	unsigned int i;
	int line = -1;

	for (i = 0; i < f->config.nr_routes; i++) {
		const struct config_route *r = &f->routes[i];

		if (!(oracle_transports(r) & transport))
			continue;
		if (improve(r, name, offers, transport, &best))
			line = (int)i;
	}
	return line;
}

static uint64_t rng_state = 88172645463325252;

static unsigned int rnd(unsigned int below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (unsigned int)(rng_state >> 32) % below;
}

/* Few labels of few letters, so that patterns and names do meet. */
static void random_name(char *out, unsigned int max_labels)
{
	static const char *const labels[] = { "a", "b", "ab", "*", "c-1" };
	unsigned int nr = 1 + rnd(max_labels);

	*out = '\0';
	while (nr--) {
		strcat(out, labels[rnd(rnd(8) ? 3 : COUNT(labels))]);
		if (nr)
			strcat(out, ".");
	}
}

static void random_pattern(char *out)
{
	unsigned int kind = rnd(10);

	*out = '\0';
	if (kind == 0) {
		strcpy(out, "*");
		return;
	}
	if (kind < 6) {
		strcpy(out, "*.");
		out += 2;
	}
	random_name(out, 4);
	if (out[0] == '*' && (!out[1] || out[1] == '.'))
		out[0] = 'a';
}

static char *const protocols[] = { "h2", "h3", "x", "xx", "acme-tls/1" };

static void random_offers(char *out)
{
	unsigned int nr = rnd(5);

	*out = '\0';
	while (nr--) {
		strcat(out, rnd(6) ? protocols[rnd(COUNT(protocols))] : "q");
		if (nr)
			strcat(out, " ");
	}
}

static void random_lines(struct line *lines, char (*text)[64], unsigned int nr)
{
	unsigned int i, j, n;

	memset(lines, 0, nr * sizeof(*lines));
	for (i = 0; i < nr; i++) {
		n = 1 + rnd(3);
		for (j = 0; j < n; j++) {
			random_pattern(text[i * 3 + j]);
			lines[i].patterns[j] = text[i * 3 + j];
		}
		n = rnd(2) ? 0 : 1 + rnd(3);
		for (j = 0; j < n; j++)
			lines[i].alpns[j] = protocols[rnd(COUNT(protocols))];
		lines[i].transports = 1 + rnd(3);
		lines[i].backend = rnd(2);
		lines[i].kind = rnd(4) ? TARGET_BACKEND : TARGET_REFUSE;
	}
}

static void against_oracle(void **state)
{
	static char text[MAX_LINES * 3][64];
	unsigned int table, lookup, nr, hits = 0;
	struct line lines[MAX_LINES];
	char name[64], offers[64];
	struct fixture f;

	(void)state;
	for (table = 0; table < 2000; table++) {
		nr = 1 + rnd(table % 2 ? 6 : MAX_LINES);
		random_lines(lines, text, nr);
		setup(&f, lines, nr);
		for (lookup = 0; lookup < 100; lookup++) {
			unsigned int transport = rnd(2) ? TCP : QUIC;
			int expected;

			random_name(name, 5);
			if (!rnd(20))
				*name = '\0';
			random_offers(offers);
			expected = oracle(&f, name, offers, transport);
			hits += expected >= 0;
			if (winner(&f, name, offers, transport) != expected)
				print_error("table %u: \"%s\" [%s] %u\n", table,
					    name, offers, transport);
			assert_int_equal(winner(&f, name, offers, transport),
					 expected);
		}
		route_table_free(f.table);
	}
	/* the test has both to look at */
	assert_in_range(hits, 60000, 190000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(any_name),
		cmocka_unit_test(alpn_order),
		cmocka_unit_test(transports),
		cmocka_unit_test(empty_table),
		cmocka_unit_test(long_names),
		cmocka_unit_test(every_length),
		cmocka_unit_test(many_offers),
		cmocka_unit_test(many_protocols),
		cmocka_unit_test(against_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
