// SPDX-License-Identifier: GPL-2.0-or-later
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* an address, "%", the name of an interface, NUL */
#define HOST_TEXT (INET6_ADDRSTRLEN + IF_NAMESIZE)

void address_unmap(struct address *a)
{
	struct in_addr v4;

	if (a->family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6))
		return;
	memcpy(&v4, &a->v6.s6_addr[12], sizeof(v4));
	memset(a->bytes, 0, sizeof(a->bytes));
	a->family = AF_INET;
	a->v4 = v4;
	a->scope = 0;
}

/* A number before a name: addresses are printed with the number. */
static bool parse_scope(const char *text, uint32_t *scope)
{
	unsigned long n;
	char *end;

	if (*text < '0' || *text > '9') {
		*scope = if_nametoindex(text);
		return *scope;
	}
	n = strtoul(text, &end, 10);
	if (*end)
		n = if_nametoindex(text);
	*scope = (uint32_t)n;
	return n && n <= UINT32_MAX;
}

static bool parse_v6(char *host, struct address *a)
{
	char *scope = strchr(host, '%');

	if (scope)
		*scope++ = '\0';
	if (inet_pton(AF_INET6, host, &a->v6) != 1)
		return false;
	/* only a link-local address means nothing without its interface */
	if (scope &&
	    (!IN6_IS_ADDR_LINKLOCAL(&a->v6) || !parse_scope(scope, &a->scope)))
		return false;
	a->family = AF_INET6;
	address_unmap(a);
	return true;
}

bool address_parse_host(const char *text, struct address *out)
{
	struct address a = { .family = AF_INET };
	char host[HOST_TEXT];
	size_t len = strlen(text);
	bool has_brackets = len && text[0] == '[';

	if (has_brackets) {
		if (text[len - 1] != ']')
			return false;
		text++;
		len -= 2;
	}
	if (!len || len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	if (has_brackets || inet_pton(AF_INET, host, a.bytes) != 1) {
		a = (struct address){ .family = AF_UNSPEC };
		if (!parse_v6(host, &a))
			return false;
	}
	*out = a;
	return true;
}

static bool parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long n;

	if (text[0] < '1' || text[0] > '9')
		return false;
	n = strtoul(text, &end, 10);
	if (*end || n > 65535)
		return false;
	*port = (uint16_t)n;
	return true;
}

bool address_parse(const char *text, struct address *out)
{
	const char *colon = strrchr(text, ':');
	struct address a = { .family = AF_UNSPEC };
	char host[HOST_TEXT + 2];
	size_t len;

	if (!colon)
		return false;
	len = (size_t)(colon - text);
	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	/* an IPv6 address needs its brackets, or its end reads as a port */
	if (len && strchr(host, ':') && host[0] != '[')
		return false;
	if (len && !address_parse_host(host, &a))
		return false;
	if (!parse_port(colon + 1, &a.port))
		return false;
	*out = a;
	return true;
}

static const char *format(const struct address *a, bool brackets, char *buf,
			  size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";
	char scope[16] = "";

	if (a->family == AF_UNSPEC) {
		snprintf(buf, size, "%s", host);
		return buf;
	}
	inet_ntop(a->family, a->bytes, host, sizeof(host));
	if (a->scope)
		snprintf(scope, sizeof(scope), "%%%u", a->scope);
	if (brackets && a->family == AF_INET6)
		snprintf(buf, size, "[%s%s]", host, scope);
	else
		snprintf(buf, size, "%s%s", host, scope);
	return buf;
}

const char *address_format_host(const struct address *a, char *buf, size_t size)
{
	return format(a, false, buf, size);
}

const char *address_format(const struct address *a, char *buf, size_t size)
{
	size_t len;

	format(a, true, buf, size);
	len = strlen(buf);
	snprintf(buf + len, size - len, ":%u", a->port);
	return buf;
}

bool address_equal_host(const struct address *a, const struct address *b)
{
	return a->family == b->family && a->scope == b->scope &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->port == b->port && address_equal_host(a, b);
}

int address_from_sockaddr(const struct sockaddr *sa, struct address *out)
{
	struct address a = { .family = sa->sa_family };

	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		a.v4 = in->sin_addr;
		a.port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)sa;

		a.v6 = in6->sin6_addr;
		a.port = ntohs(in6->sin6_port);
		a.scope = in6->sin6_scope_id;
		address_unmap(&a);
	} else {
		return -EAFNOSUPPORT;
	}
	*out = a;
	return 0;
}

socklen_t address_to_sockaddr(const struct address *a,
			      struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (a->family == AF_INET) {
		struct sockaddr_in *in = (void *)out;

		in->sin_family = AF_INET;
		in->sin_port = htons(a->port);
		in->sin_addr = a->v4;
		return sizeof(*in);
	}

	struct sockaddr_in6 *in6 = (void *)out;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(a->port);
	if (a->family == AF_INET6) {
		in6->sin6_addr = a->v6;
		in6->sin6_scope_id = a->scope;
	}
	return sizeof(*in6);
}

static void mask(const struct address *a, unsigned int len, struct address *out)
{
	unsigned int i;

	*out = (struct address){ .family = a->family };
	for (i = 0; i < 16 && len; i++) {
		unsigned int bits = len < 8 ? len : 8;

		out->bytes[i] = a->bytes[i] & (uint8_t)(0xff00 >> bits);
		len -= bits;
	}
}

static bool parse_bits(const char *text, unsigned long *bits)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	*bits = strtoul(text, &end, 10);
	return !*end;
}

int prefix_parse(const char *text, struct prefix *out)
{
	size_t len = strcspn(text, "/");
	unsigned long bits, max;
	char host[HOST_TEXT];
	struct address a;

	if (len >= sizeof(host) || memchr(text, '[', len) ||
	    memchr(text, '%', len))
		return -EBADMSG;
	memcpy(host, text, len);
	host[len] = '\0';
	if (!address_parse_host(host, &a))
		return -EBADMSG;
	bits = max = a.family == AF_INET ? 32 : 128;
	if (text[len] && !parse_bits(text + len + 1, &bits))
		return -EBADMSG;
	/* ::ffff:192.0.2.0/120 is 192.0.2.0/24 */
	if (text[len] && a.family == AF_INET && strchr(host, ':')) {
		if (bits < 96)
			return -EBADMSG;
		bits -= 96;
	}
	if (bits > max)
		return -EBADMSG;
	out->len = (uint8_t)bits;
	mask(&a, (unsigned int)bits, &out->base);
	return memcmp(out->base.bytes, a.bytes, sizeof(a.bytes)) ? -EINVAL : 0;
}

const char *prefix_format(const struct prefix *p, char *buf, size_t size)
{
	size_t len;

	address_format_host(&p->base, buf, size);
	len = strlen(buf);
	snprintf(buf + len, size - len, "/%u", p->len);
	return buf;
}

bool prefix_contains(const struct prefix *p, const struct address *a)
{
	unsigned int full = p->len / 8, rest = p->len % 8;

	if (p->base.family != a->family)
		return false;
	if (memcmp(p->base.bytes, a->bytes, full))
		return false;
	return !rest || !((p->base.bytes[full] ^ a->bytes[full]) &
			  (0xff00 >> rest) & 0xff);
}
