/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A span is bytes that somebody else owns. The readers below are the only
 * bounds checks of the parsers: each takes from the front of the span, or
 * returns false and leaves it as it was.
 */
#ifndef HEADGATE_SPAN_H
#define HEADGATE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *p;
	size_t len;
};

static inline struct span span_of(const void *p, size_t len)
{
	return (struct span){ .p = p, .len = len };
}

static inline struct span span_of_text(const char *text)
{
	return span_of(text, strlen(text));
}

static inline bool span_equal(struct span a, struct span b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

static inline bool span_take(struct span *s, size_t len, struct span *out)
{
	if (s->len < len)
		return false;
	*out = span_of(s->p, len);
	s->p += len;
	s->len -= len;
	return true;
}

static inline bool span_skip(struct span *s, size_t len)
{
	struct span skipped;

	return span_take(s, len, &skipped);
}

static inline bool span_take_u8(struct span *s, uint8_t *out)
{
	struct span b;

	if (!span_take(s, 1, &b))
		return false;
	*out = b.p[0];
	return true;
}

/* The big-endian integers of TLS and QUIC. */
static inline bool span_take_u16(struct span *s, uint16_t *out)
{
	struct span b;

	if (!span_take(s, 2, &b))
		return false;
	*out = (uint16_t)(b.p[0] << 8 | b.p[1]);
	return true;
}

static inline bool span_take_u24(struct span *s, uint32_t *out)
{
	struct span b;

	if (!span_take(s, 3, &b))
		return false;
	*out = (uint32_t)b.p[0] << 16 | (uint32_t)b.p[1] << 8 | b.p[2];
	return true;
}

static inline bool span_take_u32(struct span *s, uint32_t *out)
{
	struct span b;

	if (!span_take(s, 4, &b))
		return false;
	*out = (uint32_t)b.p[0] << 24 | (uint32_t)b.p[1] << 16 |
	       (uint32_t)b.p[2] << 8 | b.p[3];
	return true;
}

/* TLS vectors: a length, then as many bytes (RFC 8446, 3.4). */
static inline bool span_take_vector8(struct span *s, struct span *out)
{
	struct span rest = *s;
	uint8_t len;

	if (!span_take_u8(&rest, &len) || !span_take(&rest, len, out))
		return false;
	*s = rest;
	return true;
}

static inline bool span_take_vector16(struct span *s, struct span *out)
{
	struct span rest = *s;
	uint16_t len;

	if (!span_take_u16(&rest, &len) || !span_take(&rest, len, out))
		return false;
	*s = rest;
	return true;
}

#endif
