// SPDX-License-Identifier: GPL-2.0-or-later
#include "proxy_protocol.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Section numbers are those of proxy-protocol.txt. */

#define V1_SIGNATURE "PROXY"
#define V1_LINE_MAX  107 /* with the CRLF; 2.1 */

static const char v2_signature[] = "\r\n\r\n\0\r\nQUIT\n";
#define V2_SIGNATURE_LEN (sizeof(v2_signature) - 1)
#define V2_FIXED_LEN	 16

enum { V2_LOCAL = 0x20, V2_PROXY = 0x21 };

/* Family and transport in one byte: those whose addresses are read. */
enum { V2_UNSPEC = 0x00, V2_TCP4 = 0x11, V2_TCP6 = 0x21 };

enum { TLV_ALPN = 1, TLV_AUTHORITY = 2, TLV_CRC32C = 3, TLV_UNIQUE_ID = 5 };

#define UNIQUE_ID_MAX 128 /* 2.2.5 */

static bool agrees(struct span wire, struct span expected)
{
	size_t len = wire.len < expected.len ? wire.len : expected.len;

	return !len || !memcmp(wire.p, expected.p, len);
}

static bool take_until_space(struct span *s, struct span *out)
{
	const uint8_t *space = s->len ? memchr(s->p, ' ', s->len) : NULL;

	return space && span_take(s, (size_t)(space - s->p), out) &&
	       span_skip(s, 1);
}

/* One decimal spelling for each port: no sign, no zero in front. */
static bool parse_port(struct span text, uint16_t *port)
{
	uint32_t n = 0;
	size_t i;

	if (!text.len || text.len > 5 || (text.len > 1 && text.p[0] == '0'))
		return false;
	for (i = 0; i < text.len; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		n = n * 10 + text.p[i] - '0';
	}
	*port = (uint16_t)n;
	return n <= 65535;
}

static bool parse_host(struct span text, uint16_t family, struct address *a)
{
	char host[INET6_ADDRSTRLEN];

	/* a NUL would hide what comes after it */
	if (!text.len || text.len >= sizeof(host) ||
	    memchr(text.p, '\0', text.len))
		return false;
	memcpy(host, text.p, text.len);
	host[text.len] = '\0';
	*a = (struct address){ .family = family };
	return inet_pton(family, host, a->bytes) == 1;
}

/* What stands between "PROXY TCP4 " and the CRLF. */
static bool parse_endpoints(struct span text, uint16_t family,
			    struct proxy_header *h)
{
	struct span source, destination, source_port;

	if (!take_until_space(&text, &source) ||
	    !take_until_space(&text, &destination) ||
	    !take_until_space(&text, &source_port))
		return false;
	if (!parse_host(source, family, &h->source) ||
	    !parse_host(destination, family, &h->destination) ||
	    !parse_port(source_port, &h->source.port) ||
	    !parse_port(text, &h->destination.port))
		return false;
	address_unmap(&h->source);
	address_unmap(&h->destination);
	h->has_addresses = true;
	return true;
}

/*
 * `rest` follows the keyword. The addresses wait for the CRLF, and a line
 * that has none within its 107 bytes is no header (2.1).
 */
static enum proxy_result parse_line(struct span wire, struct span rest,
				    uint16_t family, struct proxy_header *h)
{
	struct span text;
	size_t window = wire.len < V1_LINE_MAX ? wire.len : V1_LINE_MAX;
	const uint8_t *end =
		memmem(rest.p, window - (wire.len - rest.len), "\r\n", 2);

	if (!end)
		return wire.len < V1_LINE_MAX ? PROXY_NEED_MORE
					      : PROXY_MALFORMED;
	span_take(&rest, (size_t)(end - rest.p), &text);
	if (family != AF_UNSPEC && !parse_endpoints(text, family, h))
		return PROXY_MALFORMED;
	h->len = (size_t)(end - wire.p) + 2;
	return PROXY_OK;
}

static enum proxy_result parse_v1(struct span wire, struct proxy_header *h)
{
	static const struct {
		const char *begin;
		uint16_t family;
	} lines[] = {
		/* whatever follows UNKNOWN is ignored, so no space is asked */
		{ V1_SIGNATURE " UNKNOWN", AF_UNSPEC },
		{ V1_SIGNATURE " TCP4 ", AF_INET },
		{ V1_SIGNATURE " TCP6 ", AF_INET6 },
	};
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct span begin = span_of_text(lines[i].begin), rest = wire;

		if (!agrees(wire, begin))
			continue;
		if (!span_skip(&rest, begin.len))
			return PROXY_NEED_MORE;
		return parse_line(wire, rest, lines[i].family, h);
	}
	return PROXY_MALFORMED;
}

/* CRC32c (RFC 3720, B.4), with the four bytes at `hole` read as zeros. */
static uint32_t crc32c(struct span s, const uint8_t *hole)
{
	uint32_t crc = UINT32_MAX;
	const uint8_t *p;
	int bit;

	for (p = s.p; p < s.p + s.len; p++) {
		if (p < hole || p >= hole + 4)
			crc ^= *p;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static bool is_sum_right(struct span header, struct span value)
{
	uint32_t sum;

	if (value.len != sizeof(sum))
		return false;
	memcpy(&sum, value.p, sizeof(sum));
	return ntohl(sum) == crc32c(header, value.p);
}

/*
 * Each has to end inside the header: a reader that goes on past it takes the
 * client's bytes for the proxy's.
 */
static bool check_tlvs(struct span header, struct span tlvs)
{
	while (tlvs.len) {
		struct span value;
		uint8_t type;

		if (!span_take_u8(&tlvs, &type) ||
		    !span_take_vector16(&tlvs, &value))
			return false;
		if (type == TLV_CRC32C && !is_sum_right(header, value))
			return false;
	}
	return true;
}

/*
 * 0 where addresses may have any length (UNSPEC, of either kind). false:
 * unassigned, and to be refused (2.2).
 */
static bool address_block_len(uint8_t protocol, size_t *len)
{
	static const uint8_t lens[] = {
		0,
		4 + 4 + 2 + 2,
		16 + 16 + 2 + 2,
		108 + 108,
	};
	unsigned int family = protocol >> 4, transport = protocol & 15;

	if (family >= sizeof(lens) || transport > 2)
		return false;
	*len = transport ? lens[family] : 0;
	return true;
}

static bool read_endpoints(struct span block, uint8_t protocol,
			   struct proxy_header *h)
{
	bool is_v4 = protocol == V2_TCP4;
	size_t len = is_v4 ? 4 : 16;
	struct span source, destination;

	h->source.family = h->destination.family = is_v4 ? AF_INET : AF_INET6;
	if (!span_take(&block, len, &source) ||
	    !span_take(&block, len, &destination) ||
	    !span_take_u16(&block, &h->source.port) ||
	    !span_take_u16(&block, &h->destination.port))
		return false;
	memcpy(h->source.bytes, source.p, len);
	memcpy(h->destination.bytes, destination.p, len);
	address_unmap(&h->source);
	address_unmap(&h->destination);
	h->has_addresses = true;
	return true;
}

/* `header` is whole; its addresses take `len` bytes. */
static enum proxy_result read_block(struct span header, uint8_t protocol,
				    size_t len, struct proxy_header *h)
{
	struct span tlvs = header, block;

	/* nobody knows where the addresses of UNSPEC end: it is skipped */
	if (!len)
		return PROXY_OK;
	if (!span_skip(&tlvs, V2_FIXED_LEN) || !span_take(&tlvs, len, &block) ||
	    !check_tlvs(header, tlvs))
		return PROXY_MALFORMED;
	if ((protocol == V2_TCP4 || protocol == V2_TCP6) &&
	    !read_endpoints(block, protocol, h))
		return PROXY_MALFORMED;
	return PROXY_OK;
}

static enum proxy_result parse_v2(struct span wire, struct proxy_header *h)
{
	struct span s = wire, header;
	uint8_t command, protocol;
	size_t block_len = 0;
	uint16_t len;

	if (!span_skip(&s, V2_SIGNATURE_LEN) || !span_take_u8(&s, &command))
		return PROXY_NEED_MORE;
	if (command != V2_LOCAL && command != V2_PROXY)
		return PROXY_MALFORMED;
	if (!span_take_u8(&s, &protocol))
		return PROXY_NEED_MORE;
	/* LOCAL: the family and what follows mean nothing */
	if (command == V2_PROXY && !address_block_len(protocol, &block_len))
		return PROXY_MALFORMED;
	h->need = V2_FIXED_LEN;
	if (!span_take_u16(&s, &len))
		return PROXY_NEED_MORE;
	if (len < block_len)
		return PROXY_MALFORMED;
	h->need = h->len = V2_FIXED_LEN + (size_t)len;
	if (!span_take(&wire, h->len, &header))
		return PROXY_NEED_MORE;
	return read_block(header, protocol, block_len, h);
}

/*
 * Until the length is known any next byte may decide, so that a client who
 * speaks something else hears of it at once.
 */
enum proxy_result proxy_parse(struct span wire, struct proxy_header *out)
{
	struct span v1 = span_of_text(V1_SIGNATURE);
	struct span v2 = span_of(v2_signature, V2_SIGNATURE_LEN);
	struct proxy_header h = { .need = wire.len + 1 };
	enum proxy_result result = PROXY_ABSENT;
	size_t need;

	if (agrees(wire, v1))
		result = wire.len < v1.len ? PROXY_NEED_MORE
					   : parse_v1(wire, &h);
	else if (agrees(wire, v2))
		result = wire.len < v2.len ? PROXY_NEED_MORE
					   : parse_v2(wire, &h);

	need = result == PROXY_NEED_MORE ? h.need : 0;
	*out = result == PROXY_OK ? h : (struct proxy_header){ 0 };
	out->need = need;
	return result;
}

static bool is_known(const struct proxy_fields *f)
{
	return f->source.family != AF_UNSPEC &&
	       f->destination.family != AF_UNSPEC;
}

/* One of each is written as IPv6, the IPv4 one mapped. */
static uint16_t common_family(const struct proxy_fields *f)
{
	bool is_v4 =
		f->source.family == AF_INET && f->destination.family == AF_INET;

	return is_v4 ? AF_INET : AF_INET6;
}

/* The bytes of the address in that family; IPv4 is the end of mapped IPv6. */
static struct span host_bytes(const struct address *a, uint16_t family,
			      uint8_t buf[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(buf, a->bytes, 16);
	if (a->family == AF_INET) {
		memcpy(buf, mapped, 12);
		memcpy(buf + 12, a->bytes, 4);
	}
	return family == AF_INET ? span_of(buf + 12, 4) : span_of(buf, 16);
}

static void format_host(const struct address *a, uint16_t family, char *out)
{
	uint8_t buf[16];

	inet_ntop(family, host_bytes(a, family, buf).p, out, INET6_ADDRSTRLEN);
}

static size_t write_v1(const struct proxy_fields *f, uint8_t *out)
{
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
	uint16_t family = common_family(f);
	char *line = (char *)out;

	if (!is_known(f))
		return (size_t)snprintf(line, PROXY_HEADER_MAX,
					V1_SIGNATURE " UNKNOWN\r\n");
	format_host(&f->source, family, source);
	format_host(&f->destination, family, destination);
	return (size_t)snprintf(
		line, PROXY_HEADER_MAX, V1_SIGNATURE " TCP%c %s %s %u %u\r\n",
		family == AF_INET ? '4' : '6', source, destination,
		f->source.port, f->destination.port);
}

static size_t put(uint8_t *out, size_t len, struct span bytes)
{
	memcpy(out + len, bytes.p, bytes.len);
	return len + bytes.len;
}

static size_t put_u16(uint8_t *out, size_t len, size_t value)
{
	out[len] = (uint8_t)(value >> 8);
	out[len + 1] = (uint8_t)value;
	return len + 2;
}

/* Whole or not at all; an empty one is left out. */
static size_t put_tlv(uint8_t *out, size_t len, uint8_t type, struct span value)
{
	if (!value.len || value.len > PROXY_HEADER_MAX ||
	    len + 3 + value.len > PROXY_HEADER_MAX)
		return len;
	out[len] = type;
	len = put_u16(out, len + 1, value.len);
	return put(out, len, value);
}

static size_t put_known(const struct proxy_fields *f, uint8_t *out, size_t len)
{
	uint16_t family = common_family(f);
	uint8_t buf[16];

	len = put(out, len, host_bytes(&f->source, family, buf));
	len = put(out, len, host_bytes(&f->destination, family, buf));
	len = put_u16(out, len, f->source.port);
	len = put_u16(out, len, f->destination.port);
	len = put_tlv(out, len, TLV_ALPN, f->alpn);
	len = put_tlv(out, len, TLV_AUTHORITY, f->authority);
	if (f->unique_id.len <= UNIQUE_ID_MAX)
		len = put_tlv(out, len, TLV_UNIQUE_ID, f->unique_id);
	return len;
}

static size_t write_v2(const struct proxy_fields *f, uint8_t *out)
{
	size_t len = V2_FIXED_LEN;

	memcpy(out, v2_signature, V2_SIGNATURE_LEN);
	/* LOCAL carries nothing at all (2.2): every reader knows that form */
	out[12] = V2_LOCAL;
	out[13] = V2_UNSPEC;
	if (is_known(f)) {
		out[12] = V2_PROXY;
		out[13] = common_family(f) == AF_INET ? V2_TCP4 : V2_TCP6;
		len = put_known(f, out, len);
	}
	/* last, from what was written: the two can not disagree */
	put_u16(out, 14, len - V2_FIXED_LEN);
	return len;
}

size_t proxy_write(unsigned int version, const struct proxy_fields *f,
		   uint8_t *out)
{
	return version == 1 ? write_v1(f, out) : write_v2(f, out);
}
