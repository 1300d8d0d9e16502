// SPDX-License-Identifier: GPL-2.0-or-later
#include "tls_checks.h"

static struct hello hello;
static struct bytes wire;
static struct tls_hello out;

static enum tls_result parse(void)
{
	return tls_parse_records(bytes_span(&wire), &checks_scratch, &out);
}

static struct span part(size_t at, size_t len)
{
	return span_of(hello.message.data + at, len);
}

static void assert_malformed(enum reason reason)
{
	assert_int_equal(parse(), TLS_MALFORMED);
	assert_int_equal(out.reason, reason);
}

/* A hello of about `size` bytes, the name at its end. */
static void build_large(size_t size)
{
	static const uint8_t zeros[TLS_HELLO_MAX];

	hello_begin(&hello);
	hello_alpn(&hello, "\2h2", 3);
	hello_extension(&hello, 21, zeros, size - 120);
	hello_server_name(&hello, "large.example", 13);
	hello_end(&hello);
}

static void one_byte_a_record(void **state)
{
	(void)state;
	hello_build(&hello, "www.example.org");
	records_write(&wire, bytes_span(&hello.message), 1);
	assert_int_equal(parse(), TLS_NAME);
	assert_string_equal(out.name, "www.example.org");
	assert_int_equal(out.alpn.len, 12);
	assert_true(out.alpn.p >= checks_scratch.bytes &&
		    out.alpn.p < checks_scratch.bytes + sizeof(checks_scratch));
}

static void every_pair_of_records(void **state)
{
	size_t len;

	(void)state;
	hello_build(&hello, "www.example.org");
	len = hello.message.len;
	for (size_t at = 1; at < len; at++) {
		wire.len = 0;
		record_write(&wire, 22, part(0, at));
		record_write(&wire, 22, part(at, len - at));
		assert_int_equal(parse(), TLS_NAME);
		assert_string_equal(out.name, "www.example.org");
	}
}

/* Between the records of a hello nothing else has a place (8446, 5.1). */
static void something_between(void **state)
{
	static const struct {
		unsigned int type;
		size_t len;
	} cases[] = { { 22, 0 }, { 20, 1 }, { 21, 2 }, { 23, 9 }, { 99, 1 } };

	(void)state;
	hello_build(&hello, "www.example.org");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t at = 1; at < hello.message.len; at++) {
			wire.len = 0;
			record_write(&wire, 22, part(0, at));
			record_write(&wire, cases[i].type,
				     part(0, cases[i].len));
			record_write(&wire, 22,
				     part(at, hello.message.len - at));
			assert_malformed(REASON_TLS_RECORD);
		}
	}
}

static void something_behind(void **state)
{
	size_t len;

	(void)state;
	hello_build(&hello, "www.example.org");
	len = hello.message.len;
	records_write(&wire, bytes_span(&hello.message), 100);
	record_write(&wire, 22, span_of("", 0));
	bytes_add(&wire, "whatever", 8);
	assert_int_equal(parse(), TLS_NAME);
	/* but not in the record that ends the hello */
	bytes_add(&hello.message, "x", 1);
	for (size_t size = 1; size < 400; size++) {
		records_write(&wire, part(0, len + 1), size);
		if (len % size)
			assert_malformed(REASON_TLS_RECORD);
		else
			assert_int_equal(parse(), TLS_NAME);
	}
}

static void large_hellos(void **state)
{
	static const size_t sizes[] = { 4096, 16384, 16385, 30000, 32750 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		build_large(sizes[i]);
		for (size_t size = 1; size <= 16384; size *= 4) {
			records_write(&wire, bytes_span(&hello.message), size);
			assert_int_equal(parse(), TLS_NAME);
			assert_string_equal(out.name, "large.example");
		}
	}
}

static void largest_hello(void **state)
{
	size_t excess;

	(void)state;
	build_large(32768);
	excess = hello.message.len - 4 - TLS_HELLO_MAX;
	for (size_t over = 0; over <= 1; over++) {
		build_large(32768 - excess + over);
		assert_int_equal(hello.message.len, 4 + TLS_HELLO_MAX + over);
		records_write(&wire, bytes_span(&hello.message), 16384);
		if (over)
			assert_malformed(REASON_TLS_HELLO_LARGE);
		else
			assert_int_equal(parse(), TLS_NAME);
	}
}

/*
 * A client that sends one byte at a time: the parser reads all bytes so far
 * at each look, so the sum of the looks is what it costs.
 */
static void cost_of_single_bytes(void **state)
{
	static const size_t sizes[] = { 1, 2, 100, 16384 };

	(void)state;
	build_large(32000);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t need = 0, nr_looks = 0, nr_bytes = 0;

		records_write(&wire, bytes_span(&hello.message), sizes[i]);
		for (size_t len = 0; len <= wire.len; len++) {
			struct span so_far = span_of(wire.data, len);

			if (len < need)
				continue;
			nr_looks++;
			nr_bytes += len;
			if (tls_parse_records(so_far, &checks_scratch, &out) !=
			    TLS_NEED_MORE)
				break;
			need = out.need;
		}
		assert_int_equal(out.name_len, 13);
		assert_true(nr_looks < 100);
		assert_true(nr_bytes < 64 * wire.len);
	}
}

static void bare_message(void **state)
{
	struct span message;

	(void)state;
	hello_build(&hello, "www.example.org");
	message = bytes_span(&hello.message);
	for (size_t len = 0; len < message.len; len++) {
		assert_int_equal(
			tls_parse_handshake(span_of(message.p, len), &out),
			TLS_NEED_MORE);
		assert_int_equal(out.need, len < 4 ? len + 1 : message.len);
	}
	assert_int_equal(tls_parse_handshake(message, &out), TLS_NAME);
	assert_string_equal(out.name, "www.example.org");
	/* what comes behind it is another message */
	bytes_add(&hello.message, "\x01\xff", 2);
	assert_int_equal(tls_parse_handshake(bytes_span(&hello.message), &out),
			 TLS_NAME);
	assert_int_equal(tls_parse_handshake(span_of("\x02", 1), &out),
			 TLS_MALFORMED);
	assert_int_equal(
		tls_parse_handshake(span_of("\x01\x00\x80\x01", 4), &out),
		TLS_MALFORMED);
	assert_int_equal(out.reason, REASON_TLS_HELLO_LARGE);
}

/* Each vector of the body one too long or too short; and the body itself. */
static void lying_lengths(void **state)
{
	/* offset, width: message, session, suites, compression, extensions */
	static const size_t at[][2] = {
		{ 1, 3 }, { 38, 1 }, { 71, 2 }, { 77, 1 }, { 79, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		size_t last = at[i][0] + at[i][1] - 1;

		hello_build(&hello, "www.example.org");
		for (int by = -2; by <= 2; by++) {
			enum tls_result r;

			hello.message.data[last] += (uint8_t)by;
			r = tls_parse_handshake(bytes_span(&hello.message),
						&out);
			if (!by)
				assert_int_equal(r, TLS_NAME);
			else if (i || by < 0)
				assert_int_equal(r, TLS_MALFORMED);
			else
				assert_int_equal(r, TLS_NEED_MORE);
			hello.message.data[last] -= (uint8_t)by;
		}
	}
}

/* A hello of these vectors, `behind` bytes too long. */
static enum tls_result with_vectors(size_t session_id, size_t suites,
				    size_t methods, size_t behind)
{
	static const uint8_t zeros[256];
	struct bytes *m = &hello.message;
	size_t at;

	m->len = 0;
	bytes_number(m, 1, 1);
	at = bytes_open(m, 3);
	bytes_add(m, zeros, 2 + 32);
	bytes_number(m, session_id, 1);
	bytes_add(m, zeros, session_id);
	bytes_number(m, suites, 2);
	bytes_add(m, zeros, suites);
	bytes_number(m, methods, 1);
	bytes_add(m, zeros, methods);
	if (behind)
		bytes_number(m, 0, 1 + behind);
	bytes_close(m, at, 3);
	return tls_parse_handshake(bytes_span(m), &out);
}

static void vectors_of_the_body(void **state)
{
	(void)state;
	/* the smallest hello that there is, and one byte less */
	assert_int_equal(with_vectors(0, 2, 1, 0), TLS_NO_NAME);
	assert_int_equal(hello.message.len, 4 + 41);
	assert_int_equal(with_vectors(0, 2, 0, 0), TLS_MALFORMED);
	assert_int_equal(with_vectors(32, 2, 1, 0), TLS_NO_NAME);
	assert_int_equal(with_vectors(33, 2, 1, 0), TLS_MALFORMED);
	assert_int_equal(with_vectors(32, 0, 1, 0), TLS_MALFORMED);
	assert_int_equal(with_vectors(32, 3, 1, 0), TLS_MALFORMED);
	assert_int_equal(with_vectors(32, 4, 0, 0), TLS_MALFORMED);
	assert_int_equal(with_vectors(32, 4, 255, 0), TLS_NO_NAME);
	/* an empty block of extensions, and a byte behind it */
	assert_int_equal(with_vectors(0, 2, 1, 1), TLS_NO_NAME);
	assert_int_equal(with_vectors(0, 2, 1, 2), TLS_MALFORMED);
}

static void every_cut(void **state)
{
	(void)state;
	hello_build(&hello, "www.example.org");
	for (size_t size = 1; size < 300; size += 7) {
		records_write(&wire, bytes_span(&hello.message), size);
		assert_int_equal(check_prefixes("built", bytes_span(&wire)),
				 wire.len);
		check_splits("built", bytes_span(&wire), 1000);
	}
	check_records("built", bytes_span(&wire), 1000);
	build_large(20000);
	records_write(&wire, bytes_span(&hello.message), 5000);
	assert_int_equal(check_prefixes("large", bytes_span(&wire)), wire.len);
	check_splits("large", bytes_span(&wire), 1000);
	check_records("large", bytes_span(&wire), 100);
}

/* One byte of a sound hello changed: whatever comes out holds for every cut. */
static void every_byte_changed(void **state)
{
	(void)state;
	hello_build(&hello, "www.example.org");
	records_write(&wire, bytes_span(&hello.message), 90);
	for (size_t at = 0; at < wire.len; at++) {
		uint8_t was = wire.data[at];

		for (int to = 0; to < 256; to += 51) {
			wire.data[at] = (uint8_t)to;
			check_prefixes("changed", bytes_span(&wire));
		}
		wire.data[at] = was;
	}
}

static void alert(void **state)
{
	static const uint8_t expected[] = { 21, 3, 3, 0, 2, 2, 112 };
	uint8_t bytes[TLS_ALERT_LEN];

	(void)state;
	tls_write_alert(TLS_ALERT_UNRECOGNIZED_NAME, bytes);
	assert_memory_equal(bytes, expected, sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_byte_a_record),
		cmocka_unit_test(every_pair_of_records),
		cmocka_unit_test(something_between),
		cmocka_unit_test(something_behind),
		cmocka_unit_test(large_hellos),
		cmocka_unit_test(largest_hello),
		cmocka_unit_test(cost_of_single_bytes),
		cmocka_unit_test(bare_message),
		cmocka_unit_test(lying_lengths),
		cmocka_unit_test(vectors_of_the_body),
		cmocka_unit_test(every_cut),
		cmocka_unit_test(every_byte_changed),
		cmocka_unit_test(alert),
	};

	return cmocka_run_group_tests_name("tls records", tests, NULL, NULL);
}
