// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>

#include "tls_checks.h"

static struct hello hello;
static struct bytes wire;
static struct tls_hello out;

static enum tls_result parse(struct span bytes)
{
	return tls_parse_records(bytes, &checks_scratch, &out);
}

/* The hello of `hello`, in one record. */
static enum tls_result parse_hello(void)
{
	records_write(&wire, bytes_span(&hello.message), 16384);
	return parse(bytes_span(&wire));
}

static void assert_refused(enum tls_result result, enum tls_result expected,
			   enum reason reason)
{
	assert_int_equal(result, expected);
	assert_int_equal(out.reason, reason);
	assert_int_equal(out.name_len, 0);
	assert_int_equal(out.name[0], 0);
	assert_int_equal(out.alpn.len, 0);
}

#define assert_malformed(result, reason) \
	assert_refused(result, TLS_MALFORMED, reason)

static void plain_hello(void **state)
{
	struct span list, name = { 0 };

	(void)state;
	hello_build(&hello, "www.example.org");
	assert_int_equal(parse_hello(), TLS_NAME);
	assert_string_equal(out.name, "www.example.org");
	assert_int_equal(out.name_len, 15);
	assert_int_equal(out.legacy_version, 0x0303);
	assert_int_equal(out.random.len, 32);
	assert_int_equal(out.random.p[0], 0xa0);
	assert_int_equal(out.session_id.len, 32);
	assert_int_equal(out.cipher_suites.len, 4);
	assert_int_equal(out.compression_methods.len, 1);
	list = out.alpn;
	assert_true(tls_next_alpn(&list, &name));
	assert_true(span_equal(name, span_of_text("h2")));
	assert_true(tls_next_alpn(&list, &name));
	assert_true(span_equal(name, span_of_text("http/1.1")));
	assert_false(tls_next_alpn(&list, &name));
	/* one record: not a byte was copied */
	assert_true(out.alpn.p > wire.data &&
		    out.alpn.p < wire.data + wire.len);
}

static void hello_without_name(void **state)
{
	(void)state;
	hello_build(&hello, NULL);
	assert_int_equal(parse_hello(), TLS_NO_NAME);
	assert_int_equal(out.alpn.len, 12);

	hello_begin_without_extensions(&hello);
	hello_end(&hello);
	assert_int_equal(parse_hello(), TLS_NO_NAME);

	hello_begin(&hello);
	hello_end(&hello);
	assert_int_equal(parse_hello(), TLS_NO_NAME);
}

static void every_first_byte(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 65536; i++) {
		uint8_t bytes[2] = { (uint8_t)(i >> 8), (uint8_t)i };

		if (bytes[0] == 22 && bytes[1] == 3)
			continue;
		assert_refused(parse(span_of(bytes, 2)), TLS_NOT_TLS,
			       REASON_NOT_TLS);
		if (bytes[0] != 22)
			assert_int_equal(parse(span_of(bytes, 1)), TLS_NOT_TLS);
	}
	assert_int_equal(parse(span_of("", 0)), TLS_NEED_MORE);
	assert_int_equal(out.need, 1);
	assert_int_equal(parse(span_of("\x16", 1)), TLS_NEED_MORE);
	assert_int_equal(parse(span_of("\x16\x03", 2)), TLS_NEED_MORE);
	assert_int_equal(parse(span_of_text("GET / HTTP/1.1")), TLS_NOT_TLS);
	assert_int_equal(parse(span_of_text("SSH-2.0-x\r\n")), TLS_NOT_TLS);
	assert_int_equal(parse(span_of("\x80\x2e\x01\x00\x02", 5)),
			 TLS_NOT_TLS);
}

/* Each answer comes with the byte that decides it, not later. */
static void headers_decide_at_once(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum reason reason;
	} cases[] = {
		{ "\x16\x03\x01\x00\x00", 5, REASON_TLS_RECORD },
		{ "\x16\x03\x01\x40\x01", 5, REASON_TLS_RECORD },
		{ "\x16\x03\x01\x02\x00\x02", 6, REASON_TLS_HELLO },
		{ "\x16\x03\x01\x02\x00\x01\x00\x00\x28", 9, REASON_TLS_HELLO },
		{ "\x16\x03\x01\x02\x00\x01\x00\x80\x01", 9,
		  REASON_TLS_HELLO_LARGE },
		/* the hello is shorter than its record */
		{ "\x16\x03\x01\x02\x00\x01\x00\x01\xfb", 9,
		  REASON_TLS_RECORD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			parse(span_of(cases[i].bytes, cases[i].len - 1)),
			TLS_NEED_MORE);
		assert_int_equal(out.need, cases[i].len);
		assert_malformed(parse(span_of(cases[i].bytes, cases[i].len)),
				 cases[i].reason);
	}
	/* the controls: the largest record, hello, and the fitting one */
	assert_int_equal(parse(span_of("\x16\x03\x01\x40\x00", 5)),
			 TLS_NEED_MORE);
	assert_int_equal(
		parse(span_of("\x16\x03\x01\x02\x00\x01\x00\x80\x00", 9)),
		TLS_NEED_MORE);
	assert_int_equal(out.need, 5 + 512 + 32768 + 4 - 512 + 2 * 5);
	assert_int_equal(
		parse(span_of("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9)),
		TLS_NEED_MORE);
	assert_int_equal(out.need, 517);
}

static void names(void **state)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
		{ "a", "a" },
		{ "WWW.Example.ORG", "www.example.org" },
		{ "example.org.", "example.org" },
		{ "AZ@[`{az", NULL },
		{ "az-09.AZ_", "az-09.az_" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "", NULL },
		{ ".", NULL },
		{ "..", NULL },
		{ "a..", NULL },
		{ "a..b", NULL },
		{ ".a", NULL },
		{ "a b", NULL },
		{ " a", NULL },
		{ "a\n", NULL },
		{ "a\x7f", NULL },
		{ "b\xc3\xbc", NULL },
		{ "*.example.org", NULL },
		{ "a/b", NULL },
		{ "a:443", NULL },
		{ "192.0.2.1", NULL },
		{ "192.0.2.1.", NULL },
		{ "999.0.02.1", NULL },
		{ "1.2.3", "1.2.3" },
		{ "1.2.3.4.5", "1.2.3.4.5" },
		{ "1.2.3.a", "1.2.3.a" },
		{ "::1", NULL },
		{ "[::1]", NULL },
		{ "2001:db8::1", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hello_build(&hello, cases[i].name);
		if (cases[i].expected) {
			assert_int_equal(parse_hello(), TLS_NAME);
			assert_string_equal(out.name, cases[i].expected);
			assert_int_equal(out.name_len, strlen(out.name));
		} else {
			assert_malformed(parse_hello(), REASON_SNI_INVALID);
		}
	}
}

static void every_byte_in_a_name(void **state)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	(void)state;
	for (unsigned int c = 0; c < 256; c++) {
		char name[3] = { 'x', (char)c, 'y' };

		hello_begin(&hello);
		hello_server_name(&hello, name, 3);
		hello_end(&hello);
		if (!c || !strchr(good, (int)c)) {
			assert_malformed(parse_hello(), REASON_SNI_INVALID);
			continue;
		}
		assert_int_equal(parse_hello(), TLS_NAME);
		assert_int_equal(out.name[1], tolower((int)c));
	}
}

/* Of every length, in labels of `label` bytes. */
static void check_lengths(size_t label, size_t longest)
{
	uint8_t name[70000];

	for (size_t len = 1; len < 65000; len += len < 600 ? 1 : 4099) {
		for (size_t i = 0; i < len; i++)
			name[i] = i % (label + 1) == label ? '.' : 'a';
		if (name[len - 1] == '.')
			continue;
		hello_begin(&hello);
		hello_server_name(&hello, name, len);
		hello_end(&hello);
		if (len <= longest) {
			assert_int_equal(parse_hello(), TLS_NAME);
			assert_int_equal(out.name_len, len);
		} else if (hello.message.len - 4 > TLS_HELLO_MAX) {
			assert_malformed(parse_hello(), REASON_TLS_HELLO_LARGE);
		} else {
			assert_malformed(parse_hello(), REASON_SNI_INVALID);
		}
	}
}

static void name_lengths(void **state)
{
	char name[256];

	(void)state;
	check_lengths(63, 253);
	check_lengths(64, 63);
	check_lengths(10, 253);
	/* 253 and the final dot */
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	name[253] = '.';
	hello_begin(&hello);
	hello_server_name(&hello, name, 254);
	hello_end(&hello);
	assert_int_equal(parse_hello(), TLS_NAME);
	assert_int_equal(out.name_len, 253);
}

/* A hello with one extension, of these bytes. */
static enum tls_result with_extension(size_t type, const char *data, size_t len)
{
	hello_begin(&hello);
	hello_extension(&hello, type, data, len);
	hello_end(&hello);
	return parse_hello();
}

static void server_name_lists(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		enum tls_result expected;
	} cases[] = {
		{ "\0\4\0\0\1a", 6, TLS_NAME },
		{ "", 0, TLS_MALFORMED },
		{ "\0", 1, TLS_MALFORMED },
		{ "\0\0", 2, TLS_MALFORMED },
		{ "\0\5\0\0\1a", 6, TLS_MALFORMED },
		{ "\0\3\0\0\1a", 6, TLS_MALFORMED },
		{ "\0\4\0\0\1a\0", 7, TLS_MALFORMED },
		{ "\0\4\0\0\2a", 6, TLS_MALFORMED },
		{ "\0\5\0\0\1ab", 7, TLS_MALFORMED },
		{ "\0\3\0\0\0", 5, TLS_MALFORMED },
		/* host_name twice */
		{ "\0\x8\0\0\1a\0\0\1b", 10, TLS_MALFORMED },
		{ "\0\x8\0\0\1a\0\0\1a", 10, TLS_MALFORMED },
		/* other types, before, behind, alone, twice, cut */
		{ "\0\x8\7\0\1\0\0\0\1a", 10, TLS_NAME },
		{ "\0\x8\0\0\1a\7\0\1\0", 10, TLS_NAME },
		{ "\0\x4\7\0\1a", 6, TLS_NO_NAME },
		{ "\0\x8\7\0\1a\7\0\1a", 10, TLS_MALFORMED },
		{ "\0\x4\7\0\2a", 6, TLS_MALFORMED },
		{ "\0\x5\0\0\1a\7", 7, TLS_MALFORMED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum tls_result result =
			with_extension(0, cases[i].data, cases[i].len);

		if (cases[i].expected == TLS_MALFORMED)
			assert_malformed(result, REASON_SNI_INVALID);
		else
			assert_int_equal(result, cases[i].expected);
	}
}

static void alpn_lists(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		bool is_sound;
	} cases[] = {
		{ "\0\3\2h2", 5, true },
		{ "\0\6\2h2\2h2", 8, true },
		{ "\0\4\3\0\xff\x80", 6, true },
		{ "", 0, false },
		{ "\0\0", 2, false },
		{ "\0\1\0", 3, false },
		{ "\0\4\2h2\0", 6, false },
		{ "\0\4\0\2h2", 6, false },
		{ "\0\2\2h2", 5, false },
		{ "\0\4\2h2", 5, false },
		{ "\0\3\3h2", 5, false },
		{ "\0\3\2h2\0", 6, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum tls_result result =
			with_extension(16, cases[i].data, cases[i].len);

		if (!cases[i].is_sound)
			assert_malformed(result, REASON_TLS_HELLO);
		else
			assert_int_equal(result, TLS_NO_NAME);
	}
}

static void extension_twice(void **state)
{
	static const size_t types[] = { 0, 16, 1, 63, 64, 4095, 4096, 65535 };

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t type = types[i];
		const char *data = type == 16 ? "\0\3\2h2" : "\0\4\0\0\1a";
		size_t len = type == 16 ? 5 : 6;

		for (int copies = 1; copies <= 2; copies++) {
			hello_begin(&hello);
			hello_extension(&hello, type, data, len);
			for (size_t other = 100; other < 1000; other++)
				hello_extension(&hello, other * 61, NULL, 0);
			if (copies == 2)
				hello_extension(&hello, type, data, len);
			hello_end(&hello);
			if (copies == 2)
				assert_malformed(parse_hello(),
						 type ? REASON_TLS_HELLO
						      : REASON_SNI_INVALID);
			else
				assert_true(parse_hello() <= TLS_NO_NAME);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_hello),
		cmocka_unit_test(hello_without_name),
		cmocka_unit_test(every_first_byte),
		cmocka_unit_test(headers_decide_at_once),
		cmocka_unit_test(names),
		cmocka_unit_test(every_byte_in_a_name),
		cmocka_unit_test(name_lengths),
		cmocka_unit_test(server_name_lists),
		cmocka_unit_test(alpn_lists),
		cmocka_unit_test(extension_twice),
	};

	return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}
