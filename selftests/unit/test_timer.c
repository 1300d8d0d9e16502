// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include <stdlib.h>

#include "timer.h"

struct probe {
	struct timer timer; /* first: a timer is its probe */
	uint64_t due_ms, fired_ms;
	unsigned int nr_fired;
};

static struct timer_wheel wheel;
static uint64_t now_ms;

static void fire(void *context, struct timer *t)
{
	struct probe *p = (void *)t;

	(void)context;
	p->fired_ms = now_ms;
	p->nr_fired++;
}

static void run_until(uint64_t end_ms, uint64_t step_ms)
{
	while (now_ms < end_ms) {
		now_ms += step_ms;
		timer_expire(&wheel, now_ms, fire, NULL);
	}
}

static void start(uint64_t at_ms)
{
	now_ms = at_ms;
	timer_wheel_init(&wheel, at_ms);
}

static void test_fires_once_and_never_early(void **state)
{
	struct probe p[200] = { 0 };
	unsigned int i;

	(void)state;
	start(1000003);
	for (i = 0; i < 200; i++) {
		p[i].due_ms = now_ms + (uint64_t)rand() % 200000;
		timer_arm(&wheel, &p[i].timer, p[i].due_ms);
	}
	run_until(now_ms + 210000, 7);
	for (i = 0; i < 200; i++) {
		assert_int_equal(p[i].nr_fired, 1);
		assert_true(p[i].fired_ms >= p[i].due_ms);
		assert_true(p[i].fired_ms <= p[i].due_ms + 2 * TIMER_TICK_MS);
	}
	assert_int_equal(timer_wait_ms(&wheel, now_ms), -1);
}

static void test_moves_later_and_earlier(void **state)
{
	struct probe late = { 0 }, early = { 0 };

	(void)state;
	start(0);
	timer_arm(&wheel, &late.timer, 1000);
	timer_arm(&wheel, &late.timer, 9000);
	timer_arm(&wheel, &early.timer, 9000);
	timer_arm(&wheel, &early.timer, 1000);
	run_until(5000, 10);
	assert_int_equal(late.nr_fired, 0);
	assert_int_equal(early.nr_fired, 1);
	run_until(10000, 10);
	assert_int_equal(late.nr_fired, 1);
	assert_true(late.fired_ms >= 9000);
}

static void test_cancelled_is_silent(void **state)
{
	struct probe a = { 0 }, b = { 0 };

	(void)state;
	start(50);
	timer_arm(&wheel, &a.timer, 500);
	timer_arm(&wheel, &b.timer, 500);
	timer_cancel(&wheel, &a.timer);
	timer_cancel(&wheel, &a.timer);
	run_until(1000, 10);
	assert_int_equal(a.nr_fired, 0);
	assert_int_equal(b.nr_fired, 1);
}

static void test_long_sleep_sees_all(void **state)
{
	struct probe p[64] = { 0 };
	unsigned int i;

	(void)state;
	start(123456);
	for (i = 0; i < 64; i++)
		timer_arm(&wheel, &p[i].timer, now_ms + i * 5000);
	now_ms += 86400000;
	timer_expire(&wheel, now_ms, fire, NULL);
	for (i = 0; i < 64; i++)
		assert_int_equal(p[i].nr_fired, 1);
}

static void test_wait_is_the_next_slot(void **state)
{
	struct probe p = { 0 };
	int ms;

	(void)state;
	start(77);
	assert_int_equal(timer_wait_ms(&wheel, now_ms), -1);
	timer_arm(&wheel, &p.timer, 77 + 3000);
	ms = timer_wait_ms(&wheel, now_ms);
	assert_in_range(ms, 3000, 3000 + TIMER_TICK_MS);
	timer_cancel(&wheel, &p.timer);
	assert_int_equal(timer_wait_ms(&wheel, now_ms), -1);
}

/* Fires, and takes itself and its neighbour away or back. */
static void meddle(void *context, struct timer *t)
{
	struct probe *p = (void *)t, *other = context;

	p->nr_fired++;
	timer_cancel(&wheel, &other->timer);
	timer_arm(&wheel, &p->timer, now_ms + 1);
}

static void test_callback_may_arm_and_cancel(void **state)
{
	struct probe a = { 0 }, b = { 0 };

	(void)state;
	start(0);
	timer_arm(&wheel, &b.timer, 100); /* behind a in the same slot */
	timer_arm(&wheel, &a.timer, 100);
	now_ms = 100 + 2 * TIMER_TICK_MS;
	timer_expire(&wheel, now_ms, meddle, &b);
	assert_int_equal(a.nr_fired, 1);
	assert_int_equal(b.nr_fired, 0);
	assert_true(timer_wait_ms(&wheel, now_ms) >= 0);
	timer_cancel(&wheel, &a.timer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fires_once_and_never_early),
		cmocka_unit_test(test_moves_later_and_earlier),
		cmocka_unit_test(test_cancelled_is_silent),
		cmocka_unit_test(test_long_sleep_sees_all),
		cmocka_unit_test(test_wait_is_the_next_slot),
		cmocka_unit_test(test_callback_may_arm_and_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
