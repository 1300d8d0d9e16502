// SPDX-License-Identifier: GPL-2.0-or-later
/* Balance: how evenly, and who moves when a server goes. */
#include "backend_fixture.h"

#include <math.h>

#include "balance.h"

static void test_round_robin_is_exact(void **state)
{
	static const unsigned int weights[] = { 5, 1, 1, 3 };
	struct fixture *f = build(setup(BALANCE_ROUND_ROBIN, 4, weights));
	unsigned int counts[4] = { 0 }, i, run = 0, longest = 0, last = 9;

	(void)state;
	for (i = 0; i < 1000; i++) {
		unsigned int at = index_of(pick(f, i));

		counts[at]++;
		run = at == last ? run + 1 : 1;
		longest = run > longest ? run : longest;
		last = at;
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(counts[i], weights[i] * 100);
	/* smooth: never the heavy server five times on end */
	assert_in_range(longest, 1, 2);
	teardown(f);
}

/* Weights 256 and 1 on forty servers do not fit; nearly is good enough. */
static void test_round_robin_many_weights(void **state)
{
	unsigned int weights[300], counts[300] = { 0 }, i, nr = 0;
	struct fixture *f;

	(void)state;
	for (i = 0; i < 300; i++)
		weights[i] = i % 2 ? 256 : 101;
	f = build(setup(BALANCE_ROUND_ROBIN, 300, weights));
	for (i = 0; i < 1000000; i++)
		counts[index_of(pick(f, i))]++;
	for (i = 0; i < 300; i++)
		nr += fabs(counts[i] - weights[i] * 1e6 / 53550) >
		      0.05 * weights[i] * 1e6 / 53550;
	assert_int_equal(nr, 0);
	teardown(f);
}

/* What a server that is down would have had goes to all the others alike. */
static void test_round_robin_without_one(void **state)
{
	static const unsigned int weights[] = { 1, 1, 1, 2 };
	struct fixture *f = build(setup(BALANCE_ROUND_ROBIN, 4, weights));
	unsigned int counts[4] = { 0 }, i;

	(void)state;
	server_at(f, 1)->is_down = true;
	for (i = 0; i < 4000; i++)
		counts[index_of(pick(f, i))]++;
	assert_int_equal(counts[1], 0);
	assert_in_range(counts[0], 999, 1001);
	assert_in_range(counts[2], 999, 1001);
	assert_in_range(counts[3], 1999, 2001);
	teardown(f);
}

/* Most of a schedule is one dead server: the rest must still share. */
static void test_round_robin_heavy_one_down(void **state)
{
	static const unsigned int weights[] = { 256, 1, 1, 1 };
	struct fixture *f = build(setup(BALANCE_ROUND_ROBIN, 4, weights));
	unsigned int counts[4] = { 0 }, i;

	(void)state;
	server_at(f, 0)->is_down = true;
	for (i = 0; i < 6000; i++)
		counts[index_of(pick(f, i))]++;
	for (i = 1; i < 4; i++)
		assert_in_range(counts[i], 1000, 4000);
	teardown(f);
}

static void test_least_conn(void **state)
{
	static const unsigned int weights[] = { 1, 2, 1 };
	struct fixture *f = build(setup(BALANCE_LEAST_CONN, 3, weights));
	struct address client = v4(1, 1);
	unsigned int i;

	(void)state;
	for (i = 0; i < 400; i++)
		server_get(pick(f, i));
	assert_int_equal(server_at(f, 0)->connections, 100);
	assert_int_equal(server_at(f, 1)->connections, 200);
	assert_int_equal(server_at(f, 2)->connections, 100);

	for (i = 0; i < 30; i++)
		server_put(server_at(f, 2));
	for (i = 0; i < 30; i++) {
		struct server *s = backend_pick(f->b, &client, NOW, &no_tries);

		assert_int_equal(index_of(s), 2);
		server_get(s);
	}
	for (i = 0; i < 3; i++)
		server_at(f, i)->connections = 0;
	teardown(f);
}

/* With nothing to do, each new connection does not go to the same server. */
static void test_least_conn_idle_is_shared(void **state)
{
	static const unsigned int weights[] = { 1, 1, 2 };
	struct fixture *f = build(setup(BALANCE_LEAST_CONN, 3, weights));
	unsigned int counts[3] = { 0 }, i;

	(void)state;
	for (i = 0; i < 400; i++)
		counts[index_of(pick(f, i))]++;
	assert_int_equal(counts[0], 100);
	assert_int_equal(counts[1], 100);
	assert_int_equal(counts[2], 200);
	teardown(f);
}

/* A group too large to look at whole still levels out. */
static void test_least_conn_large(void **state)
{
	struct fixture *f = build(setup(BALANCE_LEAST_CONN, 500, NULL));
	unsigned int i, most = 0, least = 1000;

	(void)state;
	server_at(f, 250)->connections = 100;
	for (i = 0; i < 500 * 40; i++)
		server_get(pick(f, i));
	assert_int_equal(server_at(f, 250)->connections, 100);
	server_at(f, 250)->connections = 40;
	for (i = 0; i < 500; i++) {
		unsigned int n = server_at(f, i)->connections;

		most = n > most ? n : most;
		least = n < least ? n : least;
		server_at(f, i)->connections = 0;
	}
	assert_in_range(least, 38, 40);
	assert_in_range(most, 40, 42);
	teardown(f);
}

/* Cells per weight, greatest against mean. */
static double unevenness(unsigned int nr, const unsigned int *weights)
{
	struct balance_member *members = calloc(nr, sizeof(*members));
	unsigned int *counts = calloc(nr, sizeof(*counts)), i;
	double sum = 0, worst = 0;
	struct balance b;

	for (i = 0; i < nr; i++) {
		struct address a = v4(0x0a000000 + i, 443);

		members[i].server = server_find_address("even", &a);
		members[i].weight = weights ? weights[i % 4] : 1;
		sum += members[i].weight;
	}
	assert_int_equal(balance_init(&b, BALANCE_HASH, members, nr), 0);
	for (i = 0; i < b.nr_cells; i++) {
		assert_in_range(b.cells[i], 0, nr - 1);
		counts[b.cells[i]]++;
	}
	for (i = 0; i < nr; i++) {
		double share = members[i].weight * b.nr_cells / sum;

		if (counts[i] / share > worst)
			worst = counts[i] / share;
	}
	balance_fini(&b);
	free(members);
	free(counts);
	server_collect();
	return worst;
}

static void test_hash_is_even(void **state)
{
	static const unsigned int nrs[] = { 2, 3, 10, 40, 41, 100, 655, 1000 };
	static const unsigned int weights[] = { 1, 2, 5, 10 };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(nrs) / sizeof(*nrs); i++) {
		double flat = unevenness(nrs[i], NULL);
		double weighted = unevenness(nrs[i], weights);

		print_message("%4u servers: max/share %.4f, weighted %.4f\n",
			      nrs[i], flat, weighted);
		assert_true(flat < 1.012);
		assert_true(weighted < 1.02);
	}
}

#define NR_CLIENTS 100000

static void ask_all(struct fixture *f, uint8_t *out)
{
	unsigned int i;

	for (i = 0; i < NR_CLIENTS; i++)
		out[i] = (uint8_t)index_of(pick(f, 0xc0000000 + i));
}

static unsigned int nr_moved(const uint8_t *before, const uint8_t *after)
{
	unsigned int i, nr = 0;

	for (i = 0; i < NR_CLIENTS; i++)
		nr += before[i] != after[i];
	return nr;
}

/* A server leaves the configuration: few others than its clients move. */
static void test_hash_disruption(void **state)
{
	static uint8_t before[NR_CLIENTS], after[NR_CLIENTS];
	struct fixture *f = build(setup(BALANCE_HASH, 20, NULL));
	unsigned int i, moved, counts[20] = { 0 };

	(void)state;
	ask_all(f, before);
	ask_all(f, after);
	assert_int_equal(nr_moved(before, after), 0);
	for (i = 0; i < NR_CLIENTS; i++)
		counts[before[i]]++;
	for (i = 0; i < 20; i++)
		assert_in_range(counts[i], 4600, 5400);

	/* the last one goes, and the order of the lines changes */
	teardown(f);
	f = setup(BALANCE_HASH, 19, NULL);
	f->servers[3].address = v4(0x0a000000 + 7, 443);
	f->servers[7].address = v4(0x0a000000 + 3, 443);
	build(f);
	ask_all(f, after);
	moved = nr_moved(before, after);
	print_message("1 of 20 left: %.2f %% of clients moved\n",
		      moved * 100.0 / NR_CLIENTS);
	assert_in_range(moved, counts[19], NR_CLIENTS / 20 * 2);

	/* the control: a modulus would move nearly all */
	for (moved = 0, i = 0; i < NR_CLIENTS; i++)
		moved += i % 20 != i % 19;
	assert_true(moved > NR_CLIENTS * 9 / 10);
	teardown(f);
}

/* A server is down: its clients move, always to the same place; no others. */
static void test_hash_passes_over(void **state)
{
	static uint8_t before[NR_CLIENTS], after[NR_CLIENTS];
	struct fixture *f = build(setup(BALANCE_HASH, 20, NULL));
	unsigned int i, counts[20] = { 0 };

	(void)state;
	ask_all(f, before);
	server_at(f, 4)->is_down = true;
	ask_all(f, after);
	for (i = 0; i < NR_CLIENTS; i++) {
		assert_int_not_equal(after[i], 4);
		if (before[i] != 4)
			assert_int_equal(before[i], after[i]);
		else
			counts[after[i]]++;
	}
	/* spread over the others, not onto one neighbour */
	for (i = 0; i < 20; i++)
		if (i != 4)
			assert_in_range(counts[i], 100, 600);
	ask_all(f, before);
	assert_int_equal(nr_moved(before, after), 0);

	/* all but one: found beyond the cells that are looked at */
	for (i = 0; i < 20; i++)
		server_at(f, i)->is_down = i != 11;
	for (i = 0; i < 10000; i++)
		assert_int_equal(index_of(pick(f, i)), 11);
	teardown(f);
}

/* One client: an IPv4 address, an IPv6 /64; ports do not count. */
static void test_hash_client(void **state)
{
	struct fixture *f = build(setup(BALANCE_HASH, 20, NULL));
	struct address a, b;
	unsigned int i, nr_same = 0;

	(void)state;
	for (i = 0; i < 200; i++) {
		a = v4(i * 7919, 1);
		b = v4(i * 7919, 2);
		assert_ptr_equal(backend_pick(f->b, &a, NOW, &no_tries),
				 backend_pick(f->b, &b, NOW, &no_tries));
		address_parse_host("2001:db8::1", &a);
		a.bytes[6] = (uint8_t)i;
		b = a;
		b.bytes[9] = 0xff;
		assert_ptr_equal(backend_pick(f->b, &a, NOW, &no_tries),
				 backend_pick(f->b, &b, NOW, &no_tries));
		b.bytes[7] = 0xff;
		nr_same += backend_pick(f->b, &a, NOW, &no_tries) ==
			   backend_pick(f->b, &b, NOW, &no_tries);
	}
	assert_in_range(nr_same, 0, 40);
	teardown(f);
}

/*
 * Known values: a release that changes them moves every client of every
 * installation, and must say so.
 */
static void test_hash_is_stable(void **state)
{
	static const unsigned int want[] = {
		0, 6, 2, 2, 4, 4, 3, 6, 5, 2, 0, 6
	};
	struct fixture *f = build(setup(BALANCE_HASH, 7, NULL));
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_int_equal(index_of(pick(f, 0xc6336400 + i)), want[i]);
	teardown(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_robin_is_exact),
		cmocka_unit_test(test_round_robin_many_weights),
		cmocka_unit_test(test_round_robin_without_one),
		cmocka_unit_test(test_round_robin_heavy_one_down),
		cmocka_unit_test(test_least_conn),
		cmocka_unit_test(test_least_conn_idle_is_shared),
		cmocka_unit_test(test_least_conn_large),
		cmocka_unit_test(test_hash_is_even),
		cmocka_unit_test(test_hash_disruption),
		cmocka_unit_test(test_hash_passes_over),
		cmocka_unit_test(test_hash_client),
		cmocka_unit_test(test_hash_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
