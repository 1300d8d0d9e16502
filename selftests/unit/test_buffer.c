// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "buffer.h"

static struct buffer_pool pool;
static uint8_t bytes[BUFFER_LARGE];

static int teardown(void **state)
{
	(void)state;
	buffer_pool_trim(&pool);
	return 0;
}

static void test_grows_and_keeps_order(void **state)
{
	struct buffer *b = NULL;
	size_t len = 0, piece;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 >> 3);
	while (len < sizeof(bytes)) {
		piece = 1 + (size_t)rand() % 3000;
		if (piece > sizeof(bytes) - len)
			piece = sizeof(bytes) - len;
		assert_int_equal(buffer_append(&pool, &b,
					       span_of(bytes + len, piece)), 0);
		len += piece;
		assert_int_equal(buffer_span(b).len, len);
	}
	assert_memory_equal(buffer_span(b).p, bytes, len);
	/* full is an error, and loses nothing */
	assert_int_equal(buffer_append(&pool, &b, span_of(bytes, 1)), -ENOBUFS);
	assert_int_equal(buffer_span(b).len, len);
	buffer_put(&pool, b);
}

static void test_append_behind_a_read_part(void **state)
{
	struct buffer *b = NULL;

	(void)state;
	assert_int_equal(buffer_append(&pool, &b, span_of(bytes, 4000)), 0);
	b->start = 3990;
	assert_int_equal(buffer_append(&pool, &b, span_of(bytes, 500)), 0);
	assert_int_equal(buffer_span(b).len, 510);
	assert_memory_equal(buffer_span(b).p, bytes + 3990, 10);
	assert_memory_equal(buffer_span(b).p + 10, bytes, 500);
	buffer_put(&pool, b);
}

static void test_pool_gives_back_the_same(void **state)
{
	struct buffer *small = buffer_get(&pool, 1);
	struct buffer *large = buffer_get(&pool, BUFFER_SMALL + 1);

	(void)state;
	assert_int_equal(small->size, BUFFER_SMALL);
	assert_int_equal(large->size, BUFFER_LARGE);
	buffer_put(&pool, small);
	buffer_put(&pool, large);
	buffer_put(&pool, NULL);
	assert_ptr_equal(buffer_get(&pool, BUFFER_SMALL), small);
	assert_ptr_equal(buffer_get(&pool, BUFFER_LARGE), large);
	buffer_put(&pool, small);
	buffer_put(&pool, large);
}

static void test_pool_keeps_a_bounded_number(void **state)
{
	struct buffer *b[1000];
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		b[i] = buffer_get(&pool, BUFFER_LARGE);
	for (i = 0; i < 1000; i++)
		buffer_put(&pool, b[i]);
	assert_in_range(pool.nr_large, 1, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_grows_and_keeps_order, teardown),
		cmocka_unit_test_teardown(test_append_behind_a_read_part,
					  teardown),
		cmocka_unit_test_teardown(test_pool_gives_back_the_same,
					  teardown),
		cmocka_unit_test_teardown(test_pool_keeps_a_bounded_number,
					  teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
