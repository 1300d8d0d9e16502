// SPDX-License-Identifier: GPL-2.0-or-later
#include "balance.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Up to 32 servers get exactly their weights of 1..256, more nearly so. */
#define TURNS_MAX 8192
/* Turns that one pick may use up while it meets servers that are out. */
#define TURNS_SKIPPED_MAX 16
/* Usable servers that least-conn compares, cells that hash looks at. */
#define LEAST_CONN_SEEN_MAX 64
#define CELLS_SEEN_MAX	    64

#define CELL_FREE 0xffff

/* The finalizer of MurmurHash3: every bit of x moves every bit of the result */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325ULL ^ seed; /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3ULL;
	return mix(h);
}

/*
 * The same on every host and after every restart, or clients would move. So
 * it has no key: someone with many addresses can aim them at one server, and
 * with one address he can do that anyway.
 */
static uint64_t hash_client(const struct address *client)
{
	uint64_t net = 0;

	if (client->family == AF_INET)
		return mix(1ULL << 32 | ntohl(client->v4.s_addr));
	if (client->family == AF_INET6) /* one client has the whole /64 */
		memcpy(&net, client->bytes, sizeof(net));
	return mix(be64toh(net));
}

static unsigned int gcd(unsigned int a, unsigned int b)
{
	while (b) {
		unsigned int rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Weights as turns per round, in lowest terms; returns their sum. */
static unsigned int share_turns(const struct balance *b, int64_t *share)
{
	unsigned int i, divisor = 0, nr_turns = 0;
	uint64_t sum = 0;

	for (i = 0; i < b->nr_members; i++) {
		divisor = gcd(divisor, b->members[i].weight);
		sum += b->members[i].weight;
	}
	for (i = 0; i < b->nr_members; i++) {
		uint64_t turns = b->members[i].weight;

		if (sum / divisor <= TURNS_MAX)
			turns /= divisor;
		else
			turns = turns * TURNS_MAX / sum;
		share[i] = turns ? (int64_t)turns : 1;
		nr_turns += (unsigned int)share[i];
	}
	return nr_turns;
}

/* Smooth weighted round robin, as in nginx, written down for one round. */
static void write_turns(struct balance *b, const int64_t *share,
			int64_t *credit)
{
	unsigned int turn, i, best;

	for (turn = 0; turn < b->nr_turns; turn++) {
		best = 0;
		for (i = 0; i < b->nr_members; i++) {
			credit[i] += share[i];
			if (credit[i] > credit[best])
				best = i;
		}
		credit[best] -= b->nr_turns;
		b->turns[turn] = (uint16_t)best;
	}
}

static int init_turns(struct balance *b)
{
	int64_t *share = calloc(b->nr_members, 2 * sizeof(*share));
	unsigned int i;

	if (!share)
		return -ENOMEM;
	b->nr_turns = share_turns(b, share);
	b->turns = malloc(b->nr_turns * sizeof(*b->turns));
	if (!b->turns)
		goto out;
	if (b->nr_turns == b->nr_members)
		for (i = 0; i < b->nr_members; i++)
			b->turns[i] = (uint16_t)i;
	else
		write_turns(b, share, share + b->nr_members);
out:
	free(share);
	return b->turns ? 0 : -ENOMEM;
}

/* One server's permutation of the cells: offset, then steps of skip. */
struct claim {
	const struct balance_member *member;
	uint32_t next, skip, credit;
};

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return strcmp(x->member->server->label, y->member->server->label);
}

/*
 * A prime, and a hundred cells or more for the lightest server, so that its
 * share is right within one per cent (as far as the largest table goes). Few
 * sizes, since clients move when the size changes.
 */
static unsigned int choose_nr_cells(const struct balance *b)
{
	static const unsigned int primes[] = { 4093, 65537, 655373 };
	uint64_t sum = 0, least = b->members[0].weight;
	unsigned int i;

	for (i = 0; i < b->nr_members; i++) {
		sum += b->members[i].weight;
		if (b->members[i].weight < least)
			least = b->members[i].weight;
	}
	for (i = 0; i < 2; i++)
		if (primes[i] >= 100 * sum / least)
			break;
	return primes[i];
}

static void claim_cell(struct balance *b, struct claim *c)
{
	uint32_t cell;

	do {
		cell = c->next;
		c->next = (c->next + c->skip) % b->nr_cells;
	} while (b->cells[cell] != CELL_FREE);
	b->cells[cell] = (uint16_t)(c->member - b->members);
}

/*
 * Maglev hashing (Eisenbud et al., NSDI 2016, 3.4): servers take turns at
 * claiming the next free cell of their own permutation. A server of half the
 * greatest weight has a turn every other time.
 */
static void write_cells(struct balance *b, struct claim *claims)
{
	unsigned int i = 0, filled = 0;
	uint32_t greatest = 1;

	for (i = 0; i < b->nr_members; i++)
		if (b->members[i].weight > greatest)
			greatest = b->members[i].weight;
	for (i = 0; filled < b->nr_cells; i = (i + 1) % b->nr_members) {
		struct claim *c = &claims[i];

		c->credit += c->member->weight;
		if (c->credit < greatest)
			continue;
		c->credit -= greatest;
		claim_cell(b, c);
		filled++;
	}
}

static int init_cells(struct balance *b)
{
	struct claim *claims = calloc(b->nr_members, sizeof(*claims));
	unsigned int i;

	b->nr_cells = choose_nr_cells(b);
	b->cells = malloc(b->nr_cells * sizeof(*b->cells));
	if (!claims || !b->cells) {
		free(claims);
		return -ENOMEM;
	}
	memset(b->cells, 0xff, b->nr_cells * sizeof(*b->cells));
	for (i = 0; i < b->nr_members; i++) {
		const char *label = b->members[i].server->label;

		claims[i].member = &b->members[i];
		claims[i].next = (uint32_t)(hash_text(label, 0) % b->nr_cells);
		claims[i].skip =
			(uint32_t)(hash_text(label, 1) % (b->nr_cells - 1)) + 1;
	}
	/* the order of the lines must not matter */
	qsort(claims, b->nr_members, sizeof(*claims), compare_claims);
	write_cells(b, claims);
	free(claims);
	return 0;
}

int balance_init(struct balance *b, enum config_balance kind,
		 const struct balance_member *members, unsigned int nr)
{
	int err;

	*b = (struct balance){ .kind = kind };
	if (!nr)
		return 0;
	b->members = malloc(nr * sizeof(*members));
	if (!b->members)
		return -ENOMEM;
	memcpy(b->members, members, nr * sizeof(*members));
	b->nr_members = nr;
	err = kind == BALANCE_HASH ? init_cells(b) : init_turns(b);
	if (err)
		balance_fini(b);
	return err;
}

void balance_fini(struct balance *b)
{
	free(b->members);
	free(b->turns);
	free(b->cells);
	*b = (struct balance){ 0 };
}

static bool is_usable(const struct server *s, const struct balance_wish *wish)
{
	unsigned int i;

	if (server_state(s, wish->now_ms) != wish->state)
		return false;
	for (i = 0; i < wish->tries->nr_failed; i++)
		if (wish->tries->failed[i] == s)
			return false;
	return true;
}

/* When nearly all are out: one look at each member, from `start` on. */
static struct server *first_usable(const struct balance *b,
				   const struct balance_wish *wish,
				   uint64_t start)
{
	unsigned int i, at = (unsigned int)(start % b->nr_members);

	for (i = 0; i < b->nr_members; i++) {
		struct server *s = b->members[at].server;

		if (is_usable(s, wish))
			return s;
		at = at + 1 < b->nr_members ? at + 1 : 0;
	}
	return NULL;
}

static uint32_t take_turn(const struct balance_wish *wish)
{
	return atomic_fetch_add_explicit(wish->turn, 1, memory_order_relaxed);
}

/*
 * A server that is out loses its turn to the next connection too, so that
 * the others share its part by their weights, and not all to its neighbour.
 */
static struct server *choose_in_turn(const struct balance *b,
				     const struct balance_wish *wish)
{
	unsigned int i;
	uint32_t turn = 0;

	for (i = 0; i < b->nr_turns && i < TURNS_SKIPPED_MAX; i++) {
		struct server *s;

		turn = take_turn(wish);
		s = b->members[b->turns[turn % b->nr_turns]].server;
		if (is_usable(s, wish))
			return s;
	}
	return first_usable(b, wish, mix(turn));
}

/*
 * The fewest connections for its weight; among equals it goes by turns. Of a
 * large group it compares some dozens: the least of them is little worse than
 * the least of all.
 */
static struct server *choose_least(const struct balance *b,
				   const struct balance_wish *wish)
{
	unsigned int i, seen = 0, at = b->turns[take_turn(wish) % b->nr_turns];
	uint64_t best_connections = 0, best_weight = 0;
	struct server *best = NULL;

	for (i = 0; i < b->nr_members && seen < LEAST_CONN_SEEN_MAX; i++) {
		const struct balance_member *m = &b->members[at];
		uint64_t connections;

		at = at + 1 < b->nr_members ? at + 1 : 0;
		if (!is_usable(m->server, wish))
			continue;
		seen++;
		connections = atomic_load_explicit(&m->server->connections,
						   memory_order_relaxed);
		if (best &&
		    connections * best_weight >= best_connections * m->weight)
			continue;
		best = m->server;
		best_connections = connections;
		best_weight = m->weight;
	}
	return best;
}

/* The client's cell, or the next one whose server can be used. */
static struct server *choose_by_hash(const struct balance *b,
				     const struct balance_wish *wish)
{
	uint64_t hash = hash_client(wish->client);
	unsigned int i, cell = (unsigned int)(hash % b->nr_cells);

	for (i = 0; i < CELLS_SEEN_MAX; i++) {
		struct server *s = b->members[b->cells[cell]].server;

		if (is_usable(s, wish))
			return s;
		cell = cell + 1 < b->nr_cells ? cell + 1 : 0;
	}
	return first_usable(b, wish, hash >> 32);
}

struct server *balance_choose(const struct balance *b,
			      const struct balance_wish *wish)
{
	if (!b->nr_members)
		return NULL;
	/* most backends have one server, and need no counter that all share */
	if (b->nr_members == 1)
		return first_usable(b, wish, 0);
	switch (b->kind) {
	case BALANCE_LEAST_CONN:
		return choose_least(b, wish);
	case BALANCE_HASH:
		return choose_by_hash(b, wish);
	case BALANCE_ROUND_ROBIN:
		break;
	}
	return choose_in_turn(b, wish);
}
