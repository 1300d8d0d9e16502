// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "address.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Texts and what they are printed as; NULL: refused. */
struct text_case {
	const char *text, *printed;
};

static void check_texts(const struct text_case *cases, size_t nr,
			bool (*parse)(const char *, struct address *),
			const char *(*print)(const struct address *, char *,
					     size_t))
{
	char buf[ADDRESS_TEXT];
	size_t i;

	for (i = 0; i < nr; i++) {
		const struct text_case *c = &cases[i];
		struct address a, again, untouched;
		bool is_good;

		memset(&a, 0x5a, sizeof(a));
		untouched = a;
		is_good = parse(c->text, &a);
		if (is_good != (c->printed != NULL))
			print_error("\"%s\"\n", c->text);
		assert_int_equal(is_good, c->printed != NULL);
		if (!is_good) {
			assert_memory_equal(&a, &untouched, sizeof(a));
			continue;
		}
		assert_string_equal(print(&a, buf, sizeof(buf)), c->printed);
		assert_true(parse(buf, &again));
		assert_true(address_equal(&a, &again));
	}
}

static void hosts(void **state)
{
	static const struct text_case cases[] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "[::1]", "::1" },
		{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "::ffff:192.0.2.1", "192.0.2.1" },
		{ "[::ffff:c000:0201]", "192.0.2.1" },
		/* compatible, translated: not mapped, so not IPv4 */
		{ "::192.0.2.1", "::192.0.2.1" },
		{ "64:ff9b::192.0.2.1", "64:ff9b::c000:201" },
		{ "::fffe:192.0.2.1", "::fffe:c000:201" },
		{ "fe80::1%3", "fe80::1%3" },
		{ "[fe80::1%4294967295]", "fe80::1%4294967295" },
		{ "fe80::1%lo", "fe80::1%1" },
		{ "fe80::1", "fe80::1" },
		{ "", NULL },
		{ "[", NULL },
		{ "]", NULL },
		{ "[]", NULL },
		{ "[::1", NULL },
		{ "::1]", NULL },
		{ "[[::1]]", NULL },
		{ "[192.0.2.1]", NULL },
		{ "192.0.2", NULL },
		{ "192.0.2.256", NULL },
		{ "192.0.2.01", NULL },
		{ "192.0.2.1.", NULL },
		{ " 192.0.2.1", NULL },
		{ "192.0.2.1 ", NULL },
		{ "192.0.2.1%1", NULL },
		{ "0xc0000201", NULL },
		{ "3221225985", NULL },
		{ ":", NULL },
		{ ":::", NULL },
		{ "1::2::3", NULL },
		{ "2001:db8::12345", NULL },
		{ "1:2:3:4:5:6:7:8:9", NULL },
		{ "example.org", NULL },
		{ "fe80::1%", NULL },
		{ "fe80::1%0", NULL },
		{ "fe80::1%4294967296", NULL },
		{ "fe80::1%-1", NULL },
		{ "fe80::1%+1", NULL },
		{ "fe80::1% 1", NULL },
		{ "fe80::1%no-such-link", NULL },
		{ "2001:db8::1%1", NULL },
		{ "::ffff:192.0.2.1%1", NULL },
		{ "00000000000000000000000000000000000000000000000000000000"
		  "00000000000000000000000000000000000000000000000000000000",
		  NULL },
	};

	(void)state;
	check_texts(cases, COUNT(cases), address_parse_host,
		    address_format_host);
}

static void with_port(void **state)
{
	static const struct text_case cases[] = {
		{ "192.0.2.1:443", "192.0.2.1:443" },
		{ "192.0.2.1:1", "192.0.2.1:1" },
		{ "192.0.2.1:65535", "192.0.2.1:65535" },
		{ "[2001:db8::1]:443", "[2001:db8::1]:443" },
		{ "[::]:443", "[::]:443" },
		{ "[::ffff:192.0.2.1]:443", "192.0.2.1:443" },
		{ "[fe80::1%7]:443", "[fe80::1%7]:443" },
		{ "[fe80:1111:2222:3333:4444:5555:6666:7777%4294967295]:65535",
		  "[fe80:1111:2222:3333:4444:5555:6666:7777%4294967295]:"
		  "65535" },
		{ ":443", ":443" },
		{ "", NULL },
		{ "443", NULL },
		{ ":", NULL },
		{ "192.0.2.1", NULL },
		{ "192.0.2.1:", NULL },
		{ "192.0.2.1:0", NULL },
		{ "192.0.2.1:65536", NULL },
		{ "192.0.2.1:99999999999999999999", NULL },
		{ "192.0.2.1:-1", NULL },
		{ "192.0.2.1:+1", NULL },
		{ "192.0.2.1: 1", NULL },
		{ "192.0.2.1:0443", NULL },
		{ "192.0.2.1:443x", NULL },
		{ "192.0.2.1:443:443", NULL },
		{ "2001:db8::1:443", NULL },
		{ "::1", NULL },
		{ "[::1]", NULL },
		{ "[::1]443", NULL },
		{ "[]:443", NULL },
		{ "[192.0.2.1]:443", NULL },
		{ "[::1:443", NULL },
		{ "::1]:443", NULL },
		{ "example.org:443", NULL },
		{ "0000000000000000000000000000000000000000000000000000000000"
		  "000000000000:443",
		  NULL },
	};

	(void)state;
	check_texts(cases, COUNT(cases), address_parse, address_format);
}

static void longest_text(void **state)
{
	struct address a = { .family = AF_INET6,
			     .port = 65535,
			     .scope = UINT32_MAX };
	char buf[ADDRESS_TEXT + 1];

	(void)state;
	memset(a.bytes, 0xff, 16);
	buf[ADDRESS_TEXT] = 'x';
	address_format(&a, buf, ADDRESS_TEXT);
	assert_int_equal(buf[ADDRESS_TEXT], 'x');
	assert_non_null(strstr(buf, ":65535"));
	/* a buffer that is too small gets what fits */
	memset(buf, 'x', sizeof(buf));
	address_format(&a, buf, 8);
	assert_string_equal(buf, "[ffff:f");
}

static void equality(void **state)
{
	struct address a, b;

	(void)state;
	assert_true(address_parse("192.0.2.1:443", &a));
	assert_true(address_parse("192.0.2.1:444", &b));
	assert_false(address_equal(&a, &b));
	assert_true(address_equal_host(&a, &b));
	assert_true(address_parse("192.0.2.2:443", &b));
	assert_false(address_equal_host(&a, &b));
	assert_true(address_parse("[fe80::1%1]:443", &a));
	assert_true(address_parse("[fe80::1%2]:443", &b));
	assert_false(address_equal(&a, &b));
	/* 192.0.2.1 is not an IPv6 address that begins with its bytes */
	assert_true(address_parse("[c000:201::]:443", &a));
	assert_true(address_parse("192.0.2.1:443", &b));
	assert_false(address_equal(&a, &b));
}

static void sockaddrs(void **state)
{
	static const char *const texts[] = { "192.0.2.1:443",
					     "[2001:db8::1]:65535",
					     "[fe80::1%7]:1" };
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6,
				       .sin6_port = htons(443),
				       .sin6_scope_id = 9 };
	struct sockaddr unix_socket = { .sa_family = AF_UNIX };
	struct address a, b, any = { .port = 443 };
	struct sockaddr_storage ss;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(texts); i++) {
		assert_true(address_parse(texts[i], &a));
		memset(&ss, 0xff, sizeof(ss));
		assert_int_equal(address_to_sockaddr(&a, &ss),
				 a.family == AF_INET
					 ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
		assert_int_equal(address_from_sockaddr((void *)&ss, &b), 0);
		assert_true(address_equal(&a, &b));
	}
	inet_pton(AF_INET6, "::ffff:192.0.2.1", &mapped.sin6_addr);
	assert_int_equal(address_from_sockaddr((void *)&mapped, &a), 0);
	assert_true(address_parse("192.0.2.1:443", &b));
	assert_true(address_equal(&a, &b));
	assert_int_equal(address_from_sockaddr(&unix_socket, &a),
			 -EAFNOSUPPORT);

	assert_int_equal(address_to_sockaddr(&any, &ss),
			 sizeof(struct sockaddr_in6));
	assert_int_equal(address_from_sockaddr((void *)&ss, &a), 0);
	assert_true(address_parse("[::]:443", &b));
	assert_true(address_equal(&a, &b));
}

static void prefixes(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *printed;
	} cases[] = {
		{ "0.0.0.0/0", 0, "0.0.0.0/0" },
		{ "128.0.0.0/1", 0, "128.0.0.0/1" },
		{ "192.0.2.0/24", 0, "192.0.2.0/24" },
		{ "192.0.2.0/31", 0, "192.0.2.0/31" },
		{ "192.0.2.1/32", 0, "192.0.2.1/32" },
		{ "192.0.2.1", 0, "192.0.2.1/32" },
		{ "::/0", 0, "::/0" },
		{ "8000::/1", 0, "8000::/1" },
		{ "2001:db8::/32", 0, "2001:db8::/32" },
		{ "2001:db8::2/127", 0, "2001:db8::2/127" },
		{ "2001:db8::1/128", 0, "2001:db8::1/128" },
		{ "2001:db8::1", 0, "2001:db8::1/128" },
		{ "::ffff:192.0.2.0/120", 0, "192.0.2.0/24" },
		{ "::ffff:0:0/96", 0, "0.0.0.0/0" },
		{ "::ffff:192.0.2.1", 0, "192.0.2.1/32" },
		{ "192.0.2.1/31", -EINVAL, "192.0.2.0/31" },
		{ "192.0.2.1/24", -EINVAL, "192.0.2.0/24" },
		{ "255.255.255.255/0", -EINVAL, "0.0.0.0/0" },
		{ "2001:db8::1/127", -EINVAL, "2001:db8::/127" },
		{ "ffff::1/1", -EINVAL, "8000::/1" },
		{ "2001:db8:ff::/33", -EINVAL, "2001:db8::/33" },
		{ "::ffff:192.0.2.1/120", -EINVAL, "192.0.2.0/24" },
		{ "", -EBADMSG, NULL },
		{ "/", -EBADMSG, NULL },
		{ "/24", -EBADMSG, NULL },
		{ "192.0.2.0/", -EBADMSG, NULL },
		{ "192.0.2.0/33", -EBADMSG, NULL },
		{ "192.0.2.0/-1", -EBADMSG, NULL },
		{ "192.0.2.0/+1", -EBADMSG, NULL },
		{ "192.0.2.0/ 1", -EBADMSG, NULL },
		{ "192.0.2.0/1x", -EBADMSG, NULL },
		{ "192.0.2.0/24/24", -EBADMSG, NULL },
		{ "192.0.2.0/255.255.255.0", -EBADMSG, NULL },
		{ "192.0.2.0/4294967320", -EBADMSG, NULL },
		{ "192.0.2.0/18446744073709551640", -EBADMSG, NULL },
		{ "192.0.2/24", -EBADMSG, NULL },
		{ "::/129", -EBADMSG, NULL },
		{ "[::]/0", -EBADMSG, NULL },
		{ "fe80::1%1/64", -EBADMSG, NULL },
		{ "::ffff:192.0.2.0/95", -EBADMSG, NULL },
		{ "::ffff:192.0.2.0/129", -EBADMSG, NULL },
		{ "example.org/24", -EBADMSG, NULL },
	};
	char buf[ADDRESS_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(cases); i++) {
		struct prefix p;
		int result = prefix_parse(cases[i].text, &p);

		if (result != cases[i].result)
			print_error("\"%s\"\n", cases[i].text);
		assert_int_equal(result, cases[i].result);
		if (result == -EBADMSG)
			continue;
		assert_string_equal(prefix_format(&p, buf, sizeof(buf)),
				    cases[i].printed);
		assert_int_equal(p.base.port, 0);
	}
}

static bool contains(const char *prefix, const char *host)
{
	struct prefix p;
	struct address a;

	assert_int_equal(prefix_parse(prefix, &p), 0);
	assert_true(address_parse_host(host, &a));
	a.port = 443; /* not part of the question */
	return prefix_contains(&p, &a);
}

static void containment(void **state)
{
	(void)state;
	assert_true(contains("0.0.0.0/0", "255.255.255.255"));
	assert_false(contains("0.0.0.0/0", "::1"));
	assert_true(contains("128.0.0.0/1", "255.0.0.1"));
	assert_false(contains("128.0.0.0/1", "127.255.255.255"));
	assert_true(contains("192.0.2.0/31", "192.0.2.1"));
	assert_false(contains("192.0.2.0/31", "192.0.2.2"));
	assert_true(contains("192.0.2.1", "192.0.2.1"));
	assert_false(contains("192.0.2.1", "192.0.2.0"));
	assert_true(contains("::/0", "ffff::"));
	assert_false(contains("::/0", "192.0.2.1"));
	assert_false(contains("::/0", "::ffff:192.0.2.1"));
	assert_true(contains("8000::/1", "ffff::"));
	assert_false(contains("8000::/1", "7fff::"));
	assert_true(contains("2001:db8::/127", "2001:db8::1"));
	assert_false(contains("2001:db8::/127", "2001:db8::2"));
	assert_true(contains("2001:db8::1/128", "2001:db8::1"));
	assert_false(contains("2001:db8::1/128", "2001:db8::"));
	assert_true(contains("::ffff:192.0.2.0/120", "192.0.2.9"));
	assert_true(contains("192.0.2.0/24", "::ffff:192.0.2.9"));
	assert_true(contains("fe80::/10", "fe80::1%3"));
}

/* Bit by bit, for every length, against the plainest way of saying it. */
static void every_length(void **state)
{
	char text[ADDRESS_TEXT];
	struct prefix p;
	struct address a;
	unsigned int len, bit, size;
	int family;

	(void)state;
	for (family = 0; family < 2; family++) {
		const char *base = family ? "ffff:ffff:ffff:ffff:"
					    "ffff:ffff:ffff:ffff"
					  : "255.255.255.255";

		size = family ? 128 : 32;
		for (len = 0; len <= size; len++) {
			snprintf(text, sizeof(text), "%s/%u", base, len);
			assert_int_equal(prefix_parse(text, &p),
					 len == size ? 0 : -EINVAL);
			assert_int_equal(p.len, len);
			for (bit = 0; bit < size; bit++) {
				assert_true(address_parse_host(base, &a));
				assert_int_equal(p.base.bytes[bit / 8] >>
								 (7 - bit % 8) &
							 1,
						 bit < len);
				a.bytes[bit / 8] ^= (uint8_t)(128 >> bit % 8);
				assert_int_equal(prefix_contains(&p, &a),
						 bit >= len);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts),	cmocka_unit_test(with_port),
		cmocka_unit_test(longest_text), cmocka_unit_test(equality),
		cmocka_unit_test(sockaddrs),	cmocka_unit_test(prefixes),
		cmocka_unit_test(containment),	cmocka_unit_test(every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
