// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A PROXY header written from any addresses and any TLVs: it says its own
 * length, stays inside its buffer, and is read back as what it was made from,
 * whatever the client sends behind it.
 */
#include <stdlib.h>

#include "proxy_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static uint8_t take_byte(struct span *s)
{
	uint8_t byte = 0;

	span_take_u8(s, &byte);
	return byte;
}

static struct address take_address(struct span *s)
{
	static const uint16_t families[] = { AF_INET, AF_INET6, AF_UNSPEC,
					     AF_INET6 };
	struct address a = { .family = families[take_byte(s) & 3] };
	struct span host;

	if (a.family == AF_UNSPEC)
		return a;
	if (span_take(s, a.family == AF_INET ? 4 : 16, &host))
		memcpy(a.bytes, host.p, host.len);
	span_take_u16(s, &a.port);
	address_unmap(&a);
	return a;
}

/* A 16-bit length, and as much of it as there is. */
static struct span take_value(struct span *s)
{
	struct span value = { 0 };
	uint16_t len = 0;

	span_take_u16(s, &len);
	len &= 2047;
	span_take(s, len < s->len ? len : s->len, &value);
	return value;
}

/* The TLVs again, by a reader that is not the one under test. */
static void check_tlv(struct span *tlvs, uint8_t type, struct span value)
{
	if (!tlvs->len || tlvs->p[0] != type)
		return;
	CHECK(tlvs->len >= 3 + value.len);
	CHECK((size_t)(tlvs->p[1] << 8 | tlvs->p[2]) == value.len);
	CHECK(value.len && !memcmp(tlvs->p + 3, value.p, value.len));
	CHECK(span_skip(tlvs, 3 + value.len));
}

static void check_v2(struct span wire, const struct proxy_fields *f)
{
	struct span tlvs = wire;

	CHECK(wire.len >= 16);
	CHECK((size_t)(wire.p[14] << 8 | wire.p[15]) == wire.len - 16);
	if (wire.p[12] == 0x20) {
		CHECK(wire.len == 16 && wire.p[13] == 0);
		return;
	}
	CHECK(span_skip(&tlvs, wire.p[13] == 0x11 ? 28 : 52));
	check_tlv(&tlvs, 1, f->alpn);
	check_tlv(&tlvs, 2, f->authority);
	check_tlv(&tlvs, 5, f->unique_id);
	CHECK(!tlvs.len);
}

static void check(unsigned int version, const struct proxy_fields *f,
		  struct span behind)
{
	bool is_known = f->source.family && f->destination.family;
	uint8_t *out = malloc(PROXY_HEADER_MAX), *stream;
	size_t len = proxy_write(version, f, out);
	struct proxy_header h;

	CHECK(len <= PROXY_HEADER_MAX && (version == 2 || len <= 107));
	if (version == 2)
		check_v2(span_of(out, len), f);
	stream = malloc(len + behind.len);
	memcpy(stream, out, len);
	if (behind.len)
		memcpy(stream + len, behind.p, behind.len);
	CHECK(proxy_parse(span_of(stream, len + behind.len), &h) == PROXY_OK);
	CHECK(h.len == len && h.has_addresses == is_known);
	if (is_known) {
		CHECK(address_equal(&h.source, &f->source));
		CHECK(address_equal(&h.destination, &f->destination));
	}
	free(stream);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span s = span_of(data, size);
	struct proxy_fields f = { 0 };

	f.source = take_address(&s);
	f.destination = take_address(&s);
	f.alpn = take_value(&s);
	f.authority = take_value(&s);
	f.unique_id = take_value(&s);
	check(1, &f, s);
	check(2, &f, s);
	return 0;
}
