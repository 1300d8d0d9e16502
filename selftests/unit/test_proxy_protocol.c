// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy_protocol.h"

#define SIG	    "\r\n\r\n\0\r\nQUIT\n"
#define V4	    "\xc0\x00\x02\x01\xc6\x33\x64\x07\x04\xd2\x01\xbb"
#define V4_TEXT	    "192.0.2.1:1234", "198.51.100.7:443"
#define V6_A	    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
#define V6_B	    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
#define MAPPED_A    "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01"
#define MAPPED_B    "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x33\x64\x07"
#define BYTES(text) span_of(text, sizeof(text) - 1)

/* From a buffer of exactly that size, so that a sanitizer sees an over-read. */
static enum proxy_result parse_exact(struct span wire, struct proxy_header *h)
{
	uint8_t *copy = malloc(wire.len ? wire.len : 1);
	enum proxy_result result;

	assert_non_null(copy);
	if (wire.len)
		memcpy(copy, wire.p, wire.len);
	memset(h, 0xa5, sizeof(*h));
	result = proxy_parse(span_of(copy, wire.len), h);
	free(copy);
	return result;
}

static void assert_same_header(const struct proxy_header *a,
			       const struct proxy_header *b)
{
	assert_int_equal(a->len, b->len);
	assert_int_equal(a->has_addresses, b->has_addresses);
	assert_true(address_equal(&a->source, &b->source));
	assert_true(address_equal(&a->destination, &b->destination));
}

/*
 * Every prefix is asked for, so every split is: the answers are NEED_MORE up
 * to one point and the final one from there on; no answer comes before the
 * bytes that an earlier one said were needed; an accepted header is accepted
 * exactly when its last byte is there.
 */
static enum proxy_result parse_prefixes(struct span wire,
					struct proxy_header *out)
{
	enum proxy_result final = parse_exact(wire, out), result;
	size_t n, need = 0;
	bool is_decided = false;

	for (n = 0; n <= wire.len; n++) {
		struct proxy_header h;

		result = parse_exact(span_of(wire.p, n), &h);
		if (result == PROXY_NEED_MORE) {
			assert_false(is_decided);
			assert_true(h.need > n);
			need = h.need;
			continue;
		}
		assert_int_equal(result, final);
		assert_int_equal(h.need, 0);
		assert_true(n >= need);
		if (final != PROXY_OK)
			assert_int_equal(h.len, 0);
		if (final == PROXY_OK) {
			assert_true(is_decided || n == out->len);
			assert_same_header(&h, out);
		}
		is_decided = true;
	}
	return final;
}

static void assert_refused(enum proxy_result expected, struct span wire)
{
	struct proxy_header h;
	enum proxy_result result = parse_prefixes(wire, &h);

	if (result != expected)
		print_error("%d, not %d: %.*s\n", result, expected,
			    (int)wire.len, wire.p);
	assert_int_equal(result, expected);
}

static void assert_parsed(struct span wire, size_t len, const char *source,
			  const char *destination)
{
	char text[ADDRESS_TEXT];
	struct proxy_header h;

	assert_int_equal(parse_prefixes(wire, &h), PROXY_OK);
	assert_int_equal(h.len, len);
	assert_int_equal(h.has_addresses, source != NULL);
	if (!source)
		return;
	assert_string_equal(address_format(&h.source, text, sizeof(text)),
			    source);
	assert_string_equal(address_format(&h.destination, text, sizeof(text)),
			    destination);
}

static void v1_good(void **state)
{
	static const struct {
		const char *line, *source, *destination;
	} cases[] = {
		{ "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
		  "192.168.0.1:56324", "192.168.0.11:443" },
		{ "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
		  "255.255.255.255:65535", "255.255.255.255:65535" },
		{ "PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0",
		  "0.0.0.0:0" },
		{ "PROXY TCP6 2001:db8::1 2001:DB8::2 1 65535\r\n",
		  "[2001:db8::1]:1", "[2001:db8::2]:65535" },
		{ "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe 65535 65535\r\n",
		  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
		  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe]:65535" },
		{ "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255 "
		  ":: 1 2\r\n",
		  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1", "[::]:2" },
		{ "PROXY TCP6 :: ::1 10 20\r\n", "[::]:10", "[::1]:20" },
		/* mapped IPv4, in both spellings, is IPv4 */
		{ "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:c000:202 10 20\r\n",
		  "192.0.2.1:10", "192.0.2.2:20" },
		{ "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 10 20\r\n",
		  "192.0.2.1:10", "[2001:db8::2]:20" },
		{ "PROXY UNKNOWN\r\n", NULL, NULL },
		{ "PROXY UNKNOWN \r\n", NULL, NULL },
		{ "PROXY UNKNOWN 1 2 3\n4\r5\r\n", NULL, NULL },
		{ "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
		  NULL, NULL },
	};
	char fused[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span line = span_of_text(cases[i].line);

		assert_parsed(line, line.len, cases[i].source,
			      cases[i].destination);
		snprintf(fused, sizeof(fused), "%s%s", cases[i].line,
			 "GET / HTTP/1.1\r\n\r\n");
		assert_parsed(span_of_text(fused), line.len, cases[i].source,
			      cases[i].destination);
	}
}

static void v1_malformed(void **state)
{
	static const char *const lines[] = {
		"PROXYTCP4 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY  TCP4 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY\tTCP4 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP5 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY UDP4 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY tcp4 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY UNKNOW\r\n",
		"PROXY \r\n",
		"PROXY\r\n",
		"PROXY TCP4\r\n",
		"PROXY TCP4 \r\n",
		"PROXY TCP4 1.2.3.4\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 \r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 2 \r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 2 3\r\n",
		"PROXY TCP4  1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP4 1.2.3.4  1.2.3.5 1 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5  1 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1  2\r\n",
		"PROXY TCP4 01.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.05 1 2\r\n",
		"PROXY TCP4 1.2.3 1.2.3.5 1 2\r\n",
		"PROXY TCP4 1.2.3.256 1.2.3.5 1 2\r\n",
		"PROXY TCP4 1.2.3.4.5 1.2.3.5 1 2\r\n",
		"PROXY TCP4 0x1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 01 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 02\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 00 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 65536 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 65536\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 99999\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 100000\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 4294967297\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 -1 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 +1 2\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 a\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 /\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 :\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 2\n\r\n",
		"PROXY TCP4 1.2.3.4 1.2.3.5 1 2\r\r\n",
		/* the family decides the format of both */
		"PROXY TCP4 ::1 ::2 1 2\r\n",
		"PROXY TCP4 1.2.3.4 ::2 1 2\r\n",
		"PROXY TCP4 ::ffff:1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP6 1.2.3.4 1.2.3.5 1 2\r\n",
		"PROXY TCP6 ::1 1.2.3.5 1 2\r\n",
		"PROXY TCP6 [::1] [::2] 1 2\r\n",
		"PROXY TCP6 fe80::1%1 ::2 1 2\r\n",
		"PROXY TCP6 1::2::3 ::2 1 2\r\n",
		"PROXY TCP6 1:2:3:4:5:6:7:8:9 ::2 1 2\r\n",
		"PROXY TCP6 1:2:3:4:5:6:7 ::2 1 2\r\n",
		"PROXY TCP6 12345:: ::2 1 2\r\n",
		/* 45 characters are an address, 46 and more none */
		"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:0255.255.255.255 "
		"::2 1 2\r\n",
		"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
		":ffff:ffff:ffff ::2 1 2\r\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_refused(PROXY_MALFORMED, span_of_text(lines[i]));
	assert_refused(PROXY_MALFORMED,
		       BYTES("PROXY TCP4 1.2.3.4\0 1.2.3.5 1 2\r\n"));
	assert_refused(PROXY_MALFORMED,
		       BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 2\0\r\n"));
	/* one version's beginning on the other's body */
	assert_refused(PROXY_MALFORMED, BYTES("PROXY" SIG "\x21\x11\0\x0c" V4));
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "PROXY TCP4 1.2.3.4 1.2.3.5 1 2\r\n"));
}

/* 107 bytes with the CRLF are a line; without one there they are none. */
static void v1_length(void **state)
{
	char line[256];
	struct proxy_header h;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "PROXY UNKNOWN ", 14);
	memcpy(line + 105, "\r\n", 2);
	assert_parsed(span_of(line, sizeof(line)), 107, NULL, NULL);
	assert_int_equal(parse_exact(span_of(line, 106), &h), PROXY_NEED_MORE);

	memcpy(line + 105, "x\r\n", 3);
	assert_refused(PROXY_MALFORMED, span_of(line, sizeof(line)));
	assert_int_equal(parse_exact(span_of(line, 106), &h), PROXY_NEED_MORE);
	assert_int_equal(parse_exact(span_of(line, 107), &h), PROXY_MALFORMED);

	/* a sender that never ends its line */
	memcpy(line, "PROXY TCP4 ", 11);
	assert_refused(PROXY_MALFORMED, span_of(line, sizeof(line)));
}

static void absent(void **state)
{
	static const char *const firsts[] = {
		"\x16\x03\x01\x02\x00",
		"GET / HTTP/1.1\r\n",
		"POST / HTTP/1.1",
		"PRI * HTTP/2.0\r\n",
		"SSH-2.0-OpenSSH",
		"\r\n\r\nGET /",
		"\rX",
		"PROX ",
		"proxy TCP4",
		" PROXY TCP4",
	};
	struct proxy_header h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
		assert_refused(PROXY_ABSENT, span_of_text(firsts[i]));
	/* at the first byte that can not be */
	assert_int_equal(parse_exact(BYTES("\x16"), &h), PROXY_ABSENT);
	assert_int_equal(parse_exact(BYTES("P"), &h), PROXY_NEED_MORE);
	assert_int_equal(h.need, 2);
	assert_int_equal(parse_exact(BYTES("PO"), &h), PROXY_ABSENT);
	assert_int_equal(parse_exact(BYTES("\r\n\r\n\0\r\nQUIT"), &h),
			 PROXY_NEED_MORE);
	assert_int_equal(h.need, 12);
	assert_int_equal(parse_exact(BYTES("\r\n\r\n\0\r\nQUIT\r"), &h),
			 PROXY_ABSENT);
	assert_int_equal(parse_exact(BYTES(""), &h), PROXY_NEED_MORE);
	assert_int_equal(h.need, 1);
	assert_int_equal(proxy_parse(span_of(NULL, 0), &h), PROXY_NEED_MORE);
}

static void v2_need(void **state)
{
	struct span wire = BYTES(SIG "\x21\x11\x01\x00");
	struct proxy_header h;

	(void)state;
	assert_int_equal(parse_exact(span_of(wire.p, 12), &h), PROXY_NEED_MORE);
	assert_int_equal(h.need, 13);
	assert_int_equal(parse_exact(span_of(wire.p, 13), &h), PROXY_NEED_MORE);
	assert_int_equal(h.need, 14);
	assert_int_equal(parse_exact(span_of(wire.p, 14), &h), PROXY_NEED_MORE);
	assert_int_equal(h.need, 16);
	assert_int_equal(parse_exact(wire, &h), PROXY_NEED_MORE);
	assert_int_equal(h.need, 16 + 256);
	/* what can be refused already, is */
	assert_int_equal(parse_exact(BYTES(SIG "\x11"), &h), PROXY_MALFORMED);
	assert_int_equal(parse_exact(BYTES(SIG "\x21\x41"), &h),
			 PROXY_MALFORMED);
	assert_int_equal(parse_exact(BYTES(SIG "\x21\x11\0\x0b"), &h),
			 PROXY_MALFORMED);
}

static void v2_good(void **state)
{
	(void)state;
	assert_parsed(BYTES(SIG "\x21\x11\0\x0c" V4), 28, V4_TEXT);
	assert_parsed(BYTES(SIG "\x21\x11\0\x0c" V4 "\x16\x03\x01\x02\0"), 28,
		      V4_TEXT);
	assert_parsed(BYTES(SIG "\x21\x21\0\x24" V6_A V6_B "\0\0\xff\xff"), 52,
		      "[2001:db8::1]:0", "[2001:db8::2]:65535");
	assert_parsed(BYTES(SIG "\x21\x21\0\x24" MAPPED_A MAPPED_B
				"\x04\xd2\x01\xbb"),
		      52, V4_TEXT);
	assert_parsed(BYTES(SIG "\x20\0\0\0"), 16, NULL, NULL);
	assert_parsed(BYTES(SIG "\x20\0\0\0\x16\x03\x01"), 16, NULL, NULL);
	assert_parsed(BYTES(SIG "\x20\x11\0\x0c" V4), 28, NULL, NULL);
	/* a second header is the client's business */
	assert_parsed(BYTES(SIG "\x21\x11\0\x0c" V4 SIG "\x20\0\0\0"), 28,
		      V4_TEXT);
	assert_parsed(BYTES(SIG "\x20\0\0\0"
				"PROXY TCP4 1.2.3.4 1.2.3.5 1 2\r\n"),
		      16, NULL, NULL);
}

static void v2_tlvs(void **state)
{
	(void)state;
	assert_parsed(BYTES(SIG "\x21\x11\0\x0f" V4 "\x04\0\0"), 31, V4_TEXT);
	assert_parsed(
		BYTES(SIG "\x21\x11\0\x17" V4 "\x01\0\x02h2\xee\0\x03xyz"), 39,
		V4_TEXT);
	/* cut in the type, in the length, in the value */
	assert_refused(PROXY_MALFORMED, BYTES(SIG "\x21\x11\0\x0d" V4 "\x04"));
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "\x21\x11\0\x0e" V4 "\x04\0"));
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "\x21\x11\0\x0f" V4 "\x04\0\x01"));
	assert_refused(PROXY_MALFORMED, BYTES(SIG "\x21\x11\0\x13" V4
						  "\x04\0\x01z\x05\xff\xff"));
	/* the client's bytes behind the header do not make it longer */
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "\x21\x11\0\x0f" V4 "\x04\0\x03"
				 "abcdefghij"));
	/* nor is what lies behind UDP and UNIX addresses let through */
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "\x21\x12\0\x0f" V4 "\x04\0\x01"));
}

/* As HAProxy 2.6 sends it with crc32c and unique-id. */
static void v2_checksum(void **state)
{
	uint8_t header[] = SIG "\x21\x11\0\x1c"
			       "\x7f\0\0\x01\x7f\0\0\x01\x98\x90\x46\x53"
			       "\x03\0\x04\xbd\x54\x4a\x48"
			       "\x05\0\x06"
			       "abc123";
	struct span wire = span_of(header, sizeof(header) - 1);
	size_t i;

	(void)state;
	assert_parsed(wire, 44, "127.0.0.1:39056", "127.0.0.1:18003");
	for (i = 16; i < wire.len; i++) {
		if (i == 28) /* then it is no checksum any more */
			continue;
		header[i] ^= 1;
		assert_refused(PROXY_MALFORMED, wire);
		header[i] ^= 1;
	}
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "\x21\x11\0\x12" V4 "\x03\0\x03\0\0\0"));
	/* two of them: none can be right about the other */
	assert_refused(PROXY_MALFORMED,
		       BYTES(SIG "\x21\x11\0\x1a" V4 "\x03\0\x04\0\0\0\0"
				 "\x03\0\x04\0\0\0\0"));
}

static void v2_large(void **state)
{
	size_t len = PROXY_READ_MAX, i;
	uint8_t *wire = calloc(1, len + 5);
	struct proxy_header h;

	(void)state;
	assert_non_null(wire);
	memcpy(wire, SIG "\x21\x11\xff\xff" V4, 28);
	memcpy(wire + 28, "\x04\xff\xf0", 3); /* 65520 = 65535 - 12 - 3 */
	assert_int_equal(parse_exact(span_of(wire, len), &h), PROXY_OK);
	assert_int_equal(h.len, len);
	assert_true(h.has_addresses);
	assert_int_equal(parse_exact(span_of(wire, len + 5), &h), PROXY_OK);
	assert_int_equal(h.len, len);
	for (i = 16; i < len; i += 1021) {
		assert_int_equal(parse_exact(span_of(wire, i), &h),
				 PROXY_NEED_MORE);
		assert_int_equal(h.need, len);
	}
	wire[30] = 0xf1;
	assert_int_equal(parse_exact(span_of(wire, len + 5), &h),
			 PROXY_MALFORMED);
	/* nothing but TLVs of no length; 65523 is three times 21841 */
	for (i = 28; i < len; i++)
		wire[i] = (i - 28) % 3 ? 0 : 0xea;
	assert_int_equal(parse_exact(span_of(wire, len), &h), PROXY_OK);
	free(wire);
}

struct matrix_case {
	unsigned int command, family, transport;
	size_t len;
	const char *tlv; /* at the end; NULL: bytes that are none */
};

/* The verdict table, written out from section 2.2 and not from the code. */
static enum proxy_result expected_result(const struct matrix_case *c,
					 bool *has_addresses)
{
	size_t block = c->family == 1 ? 12 : c->family == 2 ? 36 : 216;

	*has_addresses = false;
	if (c->command == 0x20)
		return PROXY_OK;
	if (c->command != 0x21 || c->family > 3 || c->transport > 2)
		return PROXY_MALFORMED;
	if (c->family == 0 || c->transport == 0)
		return PROXY_OK;
	if (c->len < block)
		return PROXY_MALFORMED;
	if (c->len > block && (!c->tlv || c->tlv[2] == 9))
		return PROXY_MALFORMED;
	*has_addresses = c->family < 3 && c->transport == 1;
	return PROXY_OK;
}

static void check_matrix_case(const struct matrix_case *c)
{
	static const uint8_t hello[] = "\x16\x03\x01\x02\x00\x01";
	uint8_t wire[16 + 300 + sizeof(hello)];
	struct proxy_header h;
	enum proxy_result result;
	bool has_addresses;

	memset(wire, 0x11, sizeof(wire));
	memcpy(wire, SIG, 12);
	wire[12] = (uint8_t)c->command;
	wire[13] = (uint8_t)(c->family << 4 | c->transport);
	wire[14] = (uint8_t)(c->len >> 8);
	wire[15] = (uint8_t)c->len;
	if (c->tlv)
		memcpy(wire + 16 + c->len - 5, c->tlv, 5);
	memcpy(wire + 16 + c->len, hello, sizeof(hello));
	result = parse_prefixes(span_of(wire, 16 + c->len + sizeof(hello)), &h);
	assert_int_equal(result, expected_result(c, &has_addresses));
	if (result != PROXY_OK)
		return;
	assert_int_equal(h.len, 16 + c->len);
	assert_int_equal(h.has_addresses, has_addresses);
}

static void check_matrix_cell(struct matrix_case c)
{
	static const size_t blocks[] = { 0, 12, 36, 216 };
	static const char sound[] = "\xee\0\2xy", lying[] = "\xee\0\x09xy";
	size_t i;

	for (i = 0; i < 4; i++) {
		c.tlv = NULL;
		c.len = blocks[i];
		check_matrix_case(&c);
		c.len = blocks[i] - (blocks[i] > 0);
		check_matrix_case(&c);
		if (c.family < 4 && i != c.family)
			continue; /* what would be its TLVs is anything */
		c.len = blocks[i] + 5;
		c.tlv = sound;
		check_matrix_case(&c);
		c.tlv = lying;
		check_matrix_case(&c);
	}
}

static void v2_matrix(void **state)
{
	unsigned int command, protocol;

	(void)state;
	for (command = 0x1e; command < 0x24; command++)
		for (protocol = 0; protocol < 256; protocol++)
			check_matrix_cell((struct matrix_case){
				.command = command,
				.family = protocol >> 4,
				.transport = protocol & 15,
			});
}

static struct address address_of(const char *text)
{
	struct address a;

	assert_true(address_parse(text, &a));
	return a;
}

static void assert_written(unsigned int version, const struct proxy_fields *f,
			   struct span expected)
{
	uint8_t out[PROXY_HEADER_MAX];
	size_t len = proxy_write(version, f, out);

	assert_int_equal(len, expected.len);
	assert_memory_equal(out, expected.p, len);
}

static void write_v1(void **state)
{
	struct proxy_fields f = {
		.source = address_of("192.0.2.1:1234"),
		.destination = address_of("198.51.100.7:443"),
		.alpn = BYTES("h2"), /* there are no TLVs in version 1 */
	};

	(void)state;
	assert_written(1, &f,
		       BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 1234 443\r\n"));
	f.source = address_of("[::ffff:192.0.2.1]:1234");
	assert_written(1, &f,
		       BYTES("PROXY TCP4 192.0.2.1 198.51.100.7 1234 443\r\n"));
	f.source = address_of("[2001:db8::1]:65535");
	assert_written(1, &f,
		       BYTES("PROXY TCP6 2001:db8::1 ::ffff:198.51.100.7 65535 "
			     "443\r\n"));
	f.destination = address_of("[fe80::2%3]:1");
	assert_written(1, &f,
		       BYTES("PROXY TCP6 2001:db8::1 fe80::2 65535 1\r\n"));
	f.source = (struct address){ 0 };
	assert_written(1, &f, BYTES("PROXY UNKNOWN\r\n"));
	f.source = f.destination;
	f.destination = (struct address){ 0 };
	assert_written(1, &f, BYTES("PROXY UNKNOWN\r\n"));
}

static void write_v2(void **state)
{
	struct proxy_fields f = {
		.source = address_of("192.0.2.1:1234"),
		.destination = address_of("198.51.100.7:443"),
	};

	(void)state;
	assert_written(2, &f, BYTES(SIG "\x21\x11\0\x0c" V4));
	f.alpn = BYTES("h2");
	f.authority = BYTES("www.example.org");
	f.unique_id = BYTES("\x00\xff\x7f");
	assert_written(2, &f,
		       BYTES(SIG "\x21\x11\0\x29" V4 "\x01\0\x02h2"
				 "\x02\0\x0fwww.example.org"
				 "\x05\0\x03\0\xff\x7f"));
	f.alpn = f.authority = f.unique_id = (struct span){ 0 };
	f.source = address_of("[2001:db8::1]:1234");
	assert_written(
		2, &f,
		BYTES(SIG "\x21\x21\0\x24" V6_A MAPPED_B "\x04\xd2\x01\xbb"));
	f.destination = address_of("[2001:db8::2]:443");
	assert_written(
		2, &f,
		BYTES(SIG "\x21\x21\0\x24" V6_A V6_B "\x04\xd2\x01\xbb"));
	f.authority = BYTES("www.example.org");
	f.source = (struct address){ 0 };
	assert_written(2, &f, BYTES(SIG "\x20\0\0\0"));
}

/* What does not fit is left out whole, and the length says what is there. */
static void write_limits(void **state)
{
	static uint8_t fill[70000];
	struct proxy_fields f = {
		.source = address_of("192.0.2.1:1234"),
		.destination = address_of("198.51.100.7:443"),
		.alpn = { fill, 255 },
		.authority = { fill, 253 },
		.unique_id = { fill, 128 },
	};
	uint8_t out[PROXY_HEADER_MAX + 1];
	size_t alpn, len, expected;
	struct proxy_header h;

	(void)state;
	/* the most that there can be */
	assert_int_equal(proxy_write(2, &f, out), 28 + 258 + 256 + 131);
	f.unique_id.len = 129;
	assert_int_equal(proxy_write(2, &f, out), 28 + 258 + 256);
	f.unique_id.len = 1;
	f.authority.len = 0;
	for (alpn = 0; alpn < sizeof(fill); alpn += alpn < 1100 ? 1 : 997) {
		f.alpn.len = alpn;
		out[PROXY_HEADER_MAX] = 0x5a;
		len = proxy_write(2, &f, out);
		assert_int_equal(out[PROXY_HEADER_MAX], 0x5a);
		expected = 28;
		if (alpn && expected + 3 + alpn <= PROXY_HEADER_MAX)
			expected += 3 + alpn;
		if (expected + 4 <= PROXY_HEADER_MAX)
			expected += 4;
		assert_int_equal(len, expected);
		assert_int_equal(len, 16 + (out[14] << 8 | out[15]));
		assert_int_equal(parse_exact(span_of(out, len), &h), PROXY_OK);
	}
}

static uint64_t rng_state = 0x9e3779b97f4a7c15;

static uint32_t rnd(uint32_t below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 32) % below;
}

static struct address random_address(void)
{
	struct address a = { .family = rnd(2) ? AF_INET : AF_INET6 };
	size_t i, len = a.family == AF_INET ? 4 : 16;

	for (i = 0; i < len; i++)
		a.bytes[i] = rnd(3) ? (uint8_t)rnd(256) : 0;
	a.port = (uint16_t)rnd(65536);
	address_unmap(&a);
	return a;
}

static void round_trip(void **state)
{
	static uint8_t fill[300];
	uint8_t out[PROXY_HEADER_MAX + 64];
	struct proxy_header h;
	size_t i, len, tail;

	(void)state;
	for (i = 0; i < sizeof(fill); i++)
		fill[i] = (uint8_t)rnd(256);
	for (i = 0; i < 100000; i++) {
		struct proxy_fields f = {
			.source = random_address(),
			.destination = random_address(),
			.alpn = { fill + rnd(40), rnd(256) },
			.authority = { fill + rnd(40), rnd(254) },
			.unique_id = { fill + rnd(40), rnd(130) },
		};

		len = proxy_write(1 + rnd(2), &f, out);
		assert_true(len <= PROXY_HEADER_MAX);
		tail = rnd(64);
		memset(out + len, (int)rnd(256), tail);
		assert_int_equal(proxy_parse(span_of(out, len + tail), &h),
				 PROXY_OK);
		assert_int_equal(h.len, len);
		assert_true(h.has_addresses);
		assert_true(address_equal(&h.source, &f.source));
		assert_true(address_equal(&h.destination, &f.destination));
		assert_int_equal(proxy_parse(span_of(out, len - 1), &h),
				 PROXY_NEED_MORE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_good),	cmocka_unit_test(v1_malformed),
		cmocka_unit_test(v1_length),	cmocka_unit_test(absent),
		cmocka_unit_test(v2_need),	cmocka_unit_test(v2_good),
		cmocka_unit_test(v2_tlvs),	cmocka_unit_test(v2_checksum),
		cmocka_unit_test(v2_large),	cmocka_unit_test(v2_matrix),
		cmocka_unit_test(write_v1),	cmocka_unit_test(write_v2),
		cmocka_unit_test(write_limits), cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
