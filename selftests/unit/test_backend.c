// SPDX-License-Identifier: GPL-2.0-or-later
/* Backends: order of choice, marks, reloads, swapping under readers. */
#include "backend_fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "grace.h"

static void test_order_of_states(void **state)
{
	static const enum config_balance kinds[] = { BALANCE_ROUND_ROBIN,
						     BALANCE_LEAST_CONN,
						     BALANCE_HASH };
	unsigned int k;

	(void)state;
	for (k = 0; k < 3; k++) {
		struct fixture *f = setup(kinds[k], 4, NULL);

		f->servers[2].is_backup = f->servers[3].is_backup = true;
		build(f);
		assert_in_range(index_of(pick(f, 1)), 0, 1);
		server_mark_failure(server_at(f, 0), NOW);
		assert_int_equal(index_of(pick(f, 1)), 1);
		server_at(f, 1)->is_down = true;
		assert_in_range(index_of(pick(f, 1)), 2, 3);
		server_at(f, 2)->is_down = true;
		assert_int_equal(index_of(pick(f, 1)), 3);
		/* a failing primary comes before a failing backup */
		server_mark_failure(server_at(f, 3), NOW);
		assert_int_equal(index_of(pick(f, 1)), 0);
		server_at(f, 0)->is_down = true;
		assert_int_equal(index_of(pick(f, 1)), 3);
		/* down by its check: not tried at all */
		server_at(f, 3)->is_down = true;
		assert_null(pick(f, 1));
		teardown(f);
	}
}

static void test_tries_are_not_repeated(void **state)
{
	static const enum config_balance kinds[] = { BALANCE_ROUND_ROBIN,
						     BALANCE_LEAST_CONN,
						     BALANCE_HASH };
	struct address client = v4(77, 1);
	unsigned int k, i, j;

	(void)state;
	for (k = 0; k < 3; k++) {
		struct fixture *f = setup(kinds[k], 4, NULL);
		struct backend_tries tries = { 0 };

		f->servers[3].is_backup = true;
		build(f);
		for (i = 0; i < BACKEND_TRIES_MAX; i++) {
			struct server *s =
				backend_pick(f->b, &client, NOW, &tries);

			assert_non_null(s);
			for (j = 0; j < i; j++)
				assert_ptr_not_equal(s, tries.failed[j]);
			assert_true(index_of(s) < 3);
			tries.failed[tries.nr_failed++] = s;
		}
		/* the backup, when all the others have failed */
		assert_int_equal(index_of(backend_pick(f->b, &client, NOW,
						       &tries)), 3);
		teardown(f);
	}
}

static void test_marks(void **state)
{
	struct fixture *f = build(setup(BALANCE_ROUND_ROBIN, 1, NULL));
	struct server *s = server_at(f, 0);
	uint32_t times[] = { 1, NOW, UINT32_MAX, UINT32_MAX - 4000, 0 };
	unsigned int i;

	(void)state;
	assert_int_equal(server_state(s, NOW), SERVER_UP);
	for (i = 0; i < 5; i++) {
		uint32_t t = times[i];

		server_mark_failure(s, t);
		assert_int_equal(s->failures, i + 1);
		assert_int_equal(server_state(s, t), SERVER_FAILING);
		/* of a worker whose clock is a turn behind */
		assert_int_equal(server_state(s, t - 5), SERVER_FAILING);
		assert_int_equal(server_state(s, t + SERVER_FAILING_MS - 1),
				 SERVER_FAILING);
		assert_int_equal(server_state(s, t + SERVER_FAILING_MS + 1),
				 SERVER_UP);
		server_mark_success(s);
		assert_int_equal(server_state(s, t), SERVER_UP);
	}
	s->is_down = true;
	server_mark_failure(s, NOW);
	assert_int_equal(server_state(s, NOW), SERVER_DOWN);
	assert_string_equal(server_state_name(SERVER_UP), "up");
	assert_string_equal(server_state_name(SERVER_FAILING), "failing");
	assert_string_equal(server_state_name(SERVER_DOWN), "down");
	teardown(f);
}

static void test_reload_keeps_servers(void **state)
{
	struct fixture *f = build(setup(BALANCE_ROUND_ROBIN, 3, NULL));
	struct fixture *g = setup(BALANCE_HASH, 3, NULL);
	struct server *kept = server_at(f, 0), *gone = server_at(f, 2);
	struct search search = { .index = 2 };

	(void)state;
	kept->connections_total = 42;
	server_get(gone);
	g->backend.nr_servers = 3;
	g->servers[2].address = v4(0x0a000063, 443);
	g->set = backend_set_new(&g->config, f->set);
	g->b = &g->set->backends[0];
	backend_set_free(f->set);
	backend_collect();
	f->set = NULL;
	assert_ptr_equal(server_at(g, 0), kept);
	assert_int_equal(server_at(g, 0)->connections_total, 42);
	backend_for_each(g->b, match_server, &search);
	assert_null(search.found);

	/* a connection holds the one that left, and its text */
	backend_collect();
	assert_string_equal(gone->label, "10.0.0.2:443");
	assert_string_equal(gone->backend_name, "b");
	server_put(gone);
	teardown(f);
	teardown(g);
}

/* The same address in two backends is two servers. */
static void test_servers_are_per_backend(void **state)
{
	struct address a = v4(1, 443);
	struct server *x = server_find_address("x", &a);
	struct server *y = server_find_address("y", &a);

	(void)state;
	assert_ptr_not_equal(x, y);
	assert_ptr_equal(x, server_find_address("x", &a));
	server_collect();
}

static void test_unix_and_v6(void **state)
{
	struct fixture *f = setup(BALANCE_ROUND_ROBIN, 2, NULL);
	struct server *s;

	(void)state;
	f->servers[0].unix_path = (char *)"/run/site.sock";
	f->servers[0].address = (struct address){ 0 };
	address_parse("[2001:db8::7]:8443", &f->servers[1].address);
	build(f);
	s = pick(f, 1);
	assert_string_equal(s->label, "unix:/run/site.sock");
	assert_int_equal(s->sockaddr.sa.sa_family, AF_UNIX);
	assert_string_equal(s->sockaddr.un.sun_path, "/run/site.sock");
	s = pick(f, 1);
	assert_string_equal(s->label, "[2001:db8::7]:8443");
	assert_int_equal(s->sockaddr_len, sizeof(struct sockaddr_in6));
	teardown(f);
}

static void test_names(void **state)
{
	struct fixture *f = setup(BALANCE_ROUND_ROBIN, 3, NULL), *g;
	struct address list[4];
	unsigned int i, counts[8] = { 0 };

	(void)state;
	f->servers[1].host = (char *)"app.example.org";
	f->servers[1].address = (struct address){ .port = 8443 };
	f->servers[1].weight = 2;
	f->servers[2].host = (char *)"spare.example.org";
	f->servers[2].is_backup = true;
	build(f);
	assert_int_equal(nr_servers(f->b), 1);

	for (i = 0; i < 4; i++)
		list[i] = v4(0x0a000004 + i, 0);
	assert_int_equal(backend_set_addresses(f->b, 1, list, 3), 0);
	assert_int_equal(nr_servers(f->b), 4);
	assert_string_equal(server_at(f, 5)->label, "10.0.0.5:8443");
	for (i = 0; i < 700; i++)
		counts[index_of(pick(f, i))]++;
	assert_int_equal(counts[0], 100);
	assert_int_equal(counts[4], 200);
	assert_int_equal(counts[6], 200);

	/* the same answer is no change; an address met twice is one server */
	struct server_pool *pool = f->b->pool;

	assert_int_equal(backend_set_addresses(f->b, 1, list, 3), 0);
	assert_ptr_equal(f->b->pool, pool);
	list[3] = v4(0x0a000000, 0);
	f->servers[1].address.port = 443;
	assert_int_equal(backend_set_addresses(f->b, 1, list, 4), 0);
	assert_ptr_not_equal(f->b->pool, pool);
	assert_int_equal(nr_servers(f->b), 4);

	/* a reload knows at once what was resolved before */
	g = setup(BALANCE_ROUND_ROBIN, 1, NULL);
	g->servers[0] = f->servers[1];
	g->set = backend_set_new(&g->config, f->set);
	g->b = &g->set->backends[0];
	assert_int_equal(nr_servers(g->b), 4);
	assert_ptr_equal(server_at(g, 6), server_at(f, 6));

	/* the backup, and then no answer at all */
	list[0] = v4(0x0a0000c8, 0);
	assert_int_equal(backend_set_addresses(f->b, 2, list, 1), 0);
	assert_int_equal(nr_servers(f->b), 5);
	assert_int_not_equal(index_of(pick(f, 1)), 0xc8);
	assert_int_equal(backend_set_addresses(f->b, 1, NULL, 0), 0);
	server_at(f, 0)->is_down = true;
	assert_int_equal(index_of(pick(f, 1)), 0xc8);
	teardown(f);
	teardown(g);
}

/* Nobody to choose from. */
static void test_empty(void **state)
{
	struct fixture *f = setup(BALANCE_HASH, 1, NULL);

	(void)state;
	f->servers[0].host = (char *)"app.example.org";
	build(f);
	assert_null(pick(f, 1));
	assert_int_equal(nr_servers(f->b), 0);
	teardown(f);
	backend_set_free(NULL);
}

#define NR_READERS 4
#define NR_SWAPS   10000

struct readers {
	struct fixture *f;
	atomic_bool stop;
	_Atomic uint64_t nr_picks;
};

static void *read_loop(void *context)
{
	struct readers *r = context;
	struct server *held[8] = { 0 };
	uint64_t picks = 0;
	unsigned int i;

	rcu_register_thread();
	while (!atomic_load(&r->stop)) {
		struct address client = v4((uint32_t)picks * 31, 1);
		struct server **at = &held[picks++ % 8];

		if (*at)
			server_put(*at);
		*at = backend_pick(r->f->b, &client, NOW, &no_tries);
		if (*at)
			server_get(*at);
		grace_pass();
		/* over its turn by the connection alone */
		if (*at && (*at)->label[0] != '1')
			abort();
		if (picks % 512 == 0) {
			atomic_fetch_add(&r->nr_picks, 512);
			grace_leave();
			usleep(50);
			grace_enter();
		}
	}
	for (i = 0; i < 8; i++)
		if (held[i])
			server_put(held[i]);
	grace_leave();
	rcu_unregister_thread();
	return NULL;
}

static void swap_under_readers(enum config_balance balance, unsigned int swaps)
{
	struct fixture *f = setup(balance, 2, NULL);
	struct readers r = { .f = f };
	pthread_t threads[NR_READERS];
	struct address list[8];
	unsigned int i, j;

	f->servers[0].host = (char *)"app.example.org";
	build(f);
	for (i = 0; i < NR_READERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, read_loop, &r), 0);
	/* on a busy machine the readers may need more time to take part */
	for (i = 0; i < swaps ||
		    (atomic_load(&r.nr_picks) <= swaps && i < 50 * swaps);
	     i++) {
		for (j = 0; j < 8; j++)
			list[j] = v4(0x0a000000 + (i * 3 + j) % 64, 0);
		assert_int_equal(
			backend_set_addresses(f->b, 0, list, 1 + i % 8), 0);
		if (i % 4 == 0)
			backend_collect();
	}
	atomic_store(&r.stop, true);
	for (i = 0; i < NR_READERS; i++)
		pthread_join(threads[i], NULL);
	print_message("%u swaps or more under %llu picks\n", swaps,
		      (unsigned long long)r.nr_picks);
	assert_true(r.nr_picks > swaps);
	teardown(f);
}

static void test_swap_under_readers(void **state)
{
	(void)state;
	swap_under_readers(BALANCE_ROUND_ROBIN, NR_SWAPS);
	swap_under_readers(BALANCE_LEAST_CONN, NR_SWAPS / 4);
	swap_under_readers(BALANCE_HASH, NR_SWAPS / 10);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_states),
		cmocka_unit_test(test_tries_are_not_repeated),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_reload_keeps_servers),
		cmocka_unit_test(test_servers_are_per_backend),
		cmocka_unit_test(test_unix_and_v6),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_swap_under_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
