// SPDX-License-Identifier: GPL-2.0-or-later
#include "sniffer_checks.h"

static void a_connection(void **state)
{
	(void)state;
	build("www.example.org");
	start(&wide);
	segment(SYN, 999, nothing);
	reply(SYN | ACK, 5, 1000, nothing);
	segment(ACK, 1000, nothing);
	assert_int_equal(nr_reports, 0);
	segment(PSH | ACK, 1000, bytes_span(&wire));
	/* at once, and whatever follows changes nothing */
	assert_int_equal(nr_reports, 1);
	reply(PSH | ACK, 6, 1000, bytes_span(&wire));
	segment(ACK, 1000 + (uint32_t)wire.len, span_of_text("more"));
	segment(SYN, 999, nothing);
	check_only_report(TLS_NAME, "www.example.org");
	assert_int_equal(reports[0].alpn_len, 12);
}

/* The sequence numbers wrap in the middle of the hello. */
static void every_two_segments(void **state)
{
	uint32_t seq = UINT32_MAX - 50;

	(void)state;
	build("www.example.org");
	for (size_t at = 1; at < wire.len; at++) {
		for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
			uint32_t second = seq + (uint32_t)at;

			start(&wide);
			segment(SYN, seq - 1, nothing);
			if (is_reversed)
				segment(ACK, second, part(at, wire.len - at));
			segment(ACK, seq, part(0, at));
			if (!is_reversed)
				segment(ACK, second, part(at, wire.len - at));
			assert_int_equal(nr_reports, 1);
			check_only_report(TLS_NAME, "www.example.org");
		}
	}
}

/* Single bytes: backward, doubled, and in overlapping pieces. */
static void many_segments(void **state)
{
	(void)state;
	build("a.example");
	assert_true(wire.len < 256);
	start(&wide);
	segment(SYN, 0, nothing);
	for (size_t i = wire.len; i > 0; i--) {
		segment(ACK, (uint32_t)i, part(i - 1, 1));
		if (i < wire.len)
			segment(ACK, (uint32_t)i, part(i - 1, 2));
	}
	check_only_report(TLS_NAME, "a.example");

	start(&wide);
	segment(SYN, 0, nothing);
	for (size_t i = 0; i + 20 <= wire.len; i += 10) {
		segment(ACK, 1 + (uint32_t)i, part(i, 20));
		segment(ACK, 1 + (uint32_t)i, part(i, 15));
	}
	segment(ACK, 1 + (uint32_t)wire.len - 25, part(wire.len - 25, 25));
	check_only_report(TLS_NAME, "a.example");
}

static void without_syn(void **state)
{
	(void)state;
	build("www.example.org");
	/* the later part first */
	start(&wide);
	segment(ACK, 1100, part(100, wire.len - 100));
	assert_int_equal(nr_reports, 0);
	segment(ACK, 1050, part(50, 50));
	segment(ACK, 1000, part(0, 50));
	assert_int_equal(nr_reports, 1);
	check_only_report(TLS_NAME, "www.example.org");
	/* the SYN last of all */
	segment(SYN, 999, nothing);
	check_only_report(TLS_NAME, "www.example.org");

	/* only the server's answer to the SYN */
	start(&wide);
	reply(SYN | ACK, 5, 1000, nothing);
	segment(ACK, 1050, part(50, wire.len - 50));
	segment(ACK, 1000, part(0, 50));
	check_only_report(TLS_NAME, "www.example.org");

	start(&wide);
	reply(SYN | ACK, 5, 1000, nothing);
	segment(ACK, 1000, span_of_text("GET /"));
	assert_int_equal(nr_reports, 1);
	check_only_report(TLS_NOT_TLS, "");

	/* something else; it waits, then it is decided */
	start(&wide);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(nr_reports, 0);
		segment(ACK, 1000 + i, span_of_text("x"));
	}
	assert_int_equal(nr_reports, 1);
	check_only_report(TLS_NOT_TLS, "");

	/* the server's data alone is no connection to speak of */
	start(&wide);
	reply(ACK, 1, 1, span_of_text("x"));
	segment(RST, 1, nothing);
	sniffer_finish(sniffer);
	assert_int_equal(nr_reports, 0);
}

static void late_syn(void **state)
{
	(void)state;
	build("www.example.org");
	/* what was seen is the later part, and the SYN says so */
	start(&wide);
	segment(ACK, 1050, part(50, wire.len - 50));
	segment(SYN, 999, nothing);
	segment(ACK, 1000, part(0, 50));
	assert_int_equal(nr_reports, 1);
	check_only_report(TLS_NAME, "www.example.org");
	/* behind the SYN nothing lies before the first byte */
	start(&wide);
	segment(SYN, 999, nothing);
	segment(ACK, 990, span_of_text("0123456789"));
	segment(ACK, 998, span_of_text("xx\x16"));
	segment(ACK, 1001, part(1, wire.len - 1));
	assert_int_equal(nr_reports, 1);
	check_only_report(TLS_NAME, "www.example.org");
}

/* A part in the middle that looks like the beginning of a longer hello. */
static void misleading_part(void **state)
{
	(void)state;
	build("www.example.org");
	assert_true(wire.len < 500);
	start(&wide);
	segment(ACK, 9000, span_of("\x16\3\1\2\0\1\0\1\xfc", 9));
	segment(ACK, 1000, bytes_span(&wire));
	assert_int_equal(nr_reports, 1);
	check_only_report(TLS_NAME, "www.example.org");
}

static void syn_with_data(void **state)
{
	(void)state;
	build("www.example.org");
	start(&wide);
	segment(SYN, 999, part(0, 70));
	segment(ACK, 1000, part(0, 70));
	segment(ACK, 1070, part(70, wire.len - 70));
	check_only_report(TLS_NAME, "www.example.org");
}

static void results(void **state)
{
	(void)state;
	start(&wide);
	build(NULL);
	send_from(1, SYN, 0, bytes_span(&wire));
	send_from(2, SYN, 0, span_of_text("GET /"));
	build("not a name");
	send_from(3, SYN, 0, bytes_span(&wire));
	build("cut.example");
	send_from(4, SYN, 0, part(0, 100));
	send_from(5, SYN, 0, nothing);
	assert_int_equal(nr_reports, 3);
	sniffer_finish(sniffer);
	assert_int_equal(nr_reports, 5);
	check_report(0, TLS_NO_NAME, "");
	check_report(1, TLS_NOT_TLS, "");
	assert_int_equal(reports[1].reason, REASON_NOT_TLS);
	check_report(2, TLS_MALFORMED, "");
	assert_int_equal(reports[2].reason, REASON_SNI_INVALID);
	check_report(3, TLS_NEED_MORE, "");
	check_report(4, TLS_NEED_MORE, "");
}

static void ports_used_again(void **state)
{
	(void)state;
	start(&wide);
	for (unsigned int i = 0; i < 3; i++) {
		uint32_t isn = 1000000 * (i + 1);

		build(i == 0   ? "one.example"
		      : i == 1 ? "two.example"
			       : "three.example");
		segment(SYN, isn, nothing);
		segment(SYN, isn, nothing);
		if (i != 1)
			segment(ACK, isn + 1, bytes_span(&wire));
	}
	sniffer_finish(sniffer);
	assert_int_equal(nr_reports, 3);
	check_report(0, TLS_NAME, "one.example");
	check_report(1, TLS_NEED_MORE, "");
	check_report(2, TLS_NAME, "three.example");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_connection, stop),
		cmocka_unit_test_teardown(every_two_segments, stop),
		cmocka_unit_test_teardown(many_segments, stop),
		cmocka_unit_test_teardown(without_syn, stop),
		cmocka_unit_test_teardown(late_syn, stop),
		cmocka_unit_test_teardown(misleading_part, stop),
		cmocka_unit_test_teardown(syn_with_data, stop),
		cmocka_unit_test_teardown(results, stop),
		cmocka_unit_test_teardown(ports_used_again, stop),
	};

	return cmocka_run_group_tests_name("sniffer", tests, NULL, NULL);
}
