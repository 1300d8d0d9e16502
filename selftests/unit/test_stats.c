// SPDX-License-Identifier: GPL-2.0-or-later
/* The shared counters: sums, gauges, a restart, another process's view. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stats.h"

static void sizes(void **state)
{
	(void)state;
	assert_null(stats_new(0));
	assert_int_equal(errno, EINVAL);
	assert_null(stats_new(STATS_WORKERS_MAX + 1));

	struct stats *s = stats_new(STATS_WORKERS_MAX);

	assert_non_null(s);
	assert_int_equal(s->nr_workers, STATS_WORKERS_MAX);
	/* no two workers write to one cache line */
	assert_int_equal((uintptr_t)&s->workers[0] % 64, 0);
	assert_int_equal((uintptr_t)&s->workers[1] % 64, 0);
	stats_free(s);
	stats_free(NULL);
}

static void sums(void **state)
{
	struct stats *s = stats_new(3);
	size_t offset = offsetof(struct stats_worker, bytes_in);
	unsigned int i;

	(void)state;
	assert_int_equal(stats_sum(s, offset), 0);
	for (i = 0; i < 3; i++)
		stats_add(&s->workers[i].bytes_in, 1ULL << (40 + i));
	assert_true(stats_sum(s, offset) == 7ULL << 40);
	stats_sub(&s->workers[1].bytes_in, 1ULL << 41);
	assert_true(stats_sum(s, offset) == 5ULL << 40);
	/* its neighbour is another counter */
	assert_int_equal(stats_sum(s, offsetof(struct stats_worker, bytes_out)),
			 0);
	stats_free(s);
}

static void restart(void **state)
{
	struct stats *s = stats_new(2);
	struct stats_worker *w = &s->workers[1];

	(void)state;
	stats_add(&w->accepted, 10);
	stats_add(&w->connections, 3);
	stats_add(&w->engine_rw, 2);
	stats_add(&w->engine_splice, 1);
	stats_add(&w->refused[REASON_NOT_TLS], 4);
	atomic_store(&s->connections, 3);
	stats_reset_gauges(s);
	assert_int_equal(atomic_load(&s->connections), 0);
	assert_int_equal(
		stats_sum(s, offsetof(struct stats_worker, connections)), 0);
	assert_int_equal(stats_sum(s, offsetof(struct stats_worker, engine_rw)),
			 0);
	assert_int_equal(
		stats_sum(s, offsetof(struct stats_worker, engine_splice)), 0);
	assert_int_equal(stats_sum(s, offsetof(struct stats_worker, accepted)),
			 10);
	assert_int_equal(stats_sum(s, offsetof(struct stats_worker,
					       refused[REASON_NOT_TLS])),
			 4);
	stats_free(s);
}

static void shared_with_a_child(void **state)
{
	struct stats *s = stats_new(1);
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		stats_add(&s->workers[0].accepted, 5);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(stats_sum(s, offsetof(struct stats_worker, accepted)),
			 5);
	stats_free(s);
}

static void reasons(void **state)
{
	unsigned int r, other;

	(void)state;
	assert_string_equal(reason_name(REASON_HELLO_TIMEOUT), "hello_timeout");
	for (r = 0; r < NR_REASONS; r++) {
		assert_true(strlen(reason_text(r)) > 0);
		for (other = 0; other < r; other++)
			assert_string_not_equal(reason_name(r),
						reason_name(other));
	}
	assert_string_equal(reason_name(NR_REASONS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(sums),
		cmocka_unit_test(restart),
		cmocka_unit_test(shared_with_a_child),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
