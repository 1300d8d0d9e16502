// SPDX-License-Identifier: GPL-2.0-or-later
#include "sniffer_checks.h"

static void limit_of_connections(void **state)
{
	static const struct sniffer_limits narrow = { 4, 1u << 20 };

	(void)state;
	build("www.example.org");
	start(&narrow);
	for (unsigned int i = 0; i < 5; i++) {
		send_from(100 + i, SYN, 0, part(0, 10));
		/* the first one stays active */
		send_from(100, ACK, 11, part(10, 1));
		assert_int_equal(nr_reports, i == 4);
	}
	assert_int_equal(sniffer_counters(sniffer)->nr_given_up, 1);
	assert_int_equal(reports[0].r.client.port, 101);
	check_report(0, TLS_NEED_MORE, "");
	/* the control: the first one still has all of its bytes */
	send_from(100, ACK, 1, bytes_span(&wire));
	check_report(1, TLS_NAME, "www.example.org");
}

static void limit_of_bytes(void **state)
{
	static const struct sniffer_limits narrow = { 1000, 10000 };

	(void)state;
	build("www.example.org");
	start(&narrow);
	/* a stream begins with 2,048 bytes */
	for (unsigned int i = 0; i < 4; i++)
		send_from(100 + i, SYN, 0, part(0, 10));
	assert_int_equal(nr_reports, 0);
	send_from(104, SYN, 0, part(0, 10));
	assert_int_equal(nr_reports, 1);
	assert_int_equal(reports[0].r.client.port, 100);
	/* decided ones hold nothing */
	for (unsigned int i = 200; i < 300; i++)
		send_from(i, SYN, 0, bytes_span(&wire));
	assert_int_equal(nr_reports, 101);
	assert_int_equal(sniffer_counters(sniffer)->nr_given_up, 1);
}

/* A client that sends everything but the first byte. */
static void limits_of_a_stream(void **state)
{
	static uint8_t zeros[1000];
	static const struct sniffer_limits generous = { 10, 64u << 20 };

	(void)state;
	start(&generous);
	segment(SYN, 0, nothing);
	for (uint32_t i = 0; i < 10000; i++)
		segment(ACK, 2 + 2 * i, span_of(zeros, 1));
	assert_int_equal(sniffer_counters(sniffer)->nr_not_kept,
			 10000 - REASSEMBLY_LATER_MAX);
	check_only_report(TLS_NEED_MORE, "");

	start(&generous);
	segment(SYN, 0, nothing);
	segment(ACK, 1 + REASSEMBLY_MAX - 1000, span_of(zeros, 1000));
	assert_int_equal(sniffer_counters(sniffer)->nr_not_kept, 0);
	segment(ACK, 1 + REASSEMBLY_MAX - 999, span_of(zeros, 1000));
	assert_int_equal(sniffer_counters(sniffer)->nr_not_kept, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(limit_of_connections, stop),
		cmocka_unit_test_teardown(limit_of_bytes, stop),
		cmocka_unit_test_teardown(limits_of_a_stream, stop),
	};

	return cmocka_run_group_tests_name("sniffer: limits", tests, NULL,
					   NULL);
}
