// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first byte says how the rest is to be understood: as a stream, or as a
 * message that is put into records. What comes out is held to what tls.h says.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tls.h"

#define RECORDS_MAX (256u << 10)

static struct tls_scratch scratch, other_scratch;

static void require(bool holds)
{
	if (!holds)
		abort();
}

static bool is_within(struct span inner, struct span outer)
{
	return !inner.len || (inner.p >= outer.p &&
			      inner.p + inner.len <= outer.p + outer.len);
}

static void check_fields(struct span input, const struct tls_hello *h)
{
	const struct span all = span_of(scratch.bytes, sizeof(scratch.bytes));
	const struct span fields[] = {
		h->alpn,	  h->random,	 h->session_id,
		h->cipher_suites, h->extensions, h->compression_methods,
	};
	struct span list = h->alpn, name;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		require(is_within(fields[i], input) ||
			is_within(fields[i], all));
	while (list.len)
		require(tls_next_alpn(&list, &name) && name.len);
	require(h->name_len <= TLS_NAME_MAX && !h->name[h->name_len]);
	for (size_t i = 0; i < h->name_len; i++) {
		int c = (unsigned char)h->name[i];

		require(islower(c) || isdigit(c) || strchr("-._", c));
	}
}

static void check(struct span input, enum tls_result result,
		  const struct tls_hello *h)
{
	bool is_refused = result == TLS_NOT_TLS || result == TLS_MALFORMED;

	check_fields(input, h);
	require((h->name_len > 0) == (result == TLS_NAME));
	require((h->reason != REASON_NONE) == is_refused);
	require((h->need != 0) == (result == TLS_NEED_MORE));
	require(result != TLS_NEED_MORE || h->need > input.len);
	require(result <= TLS_NO_NAME ? h->random.len == 32 : !h->alpn.len);
}

static void require_equal(enum tls_result ra, const struct tls_hello *a,
			  enum tls_result rb, const struct tls_hello *b)
{
	require(ra == rb && a->reason == b->reason &&
		a->name_len == b->name_len && !strcmp(a->name, b->name) &&
		span_equal(a->alpn, b->alpn) &&
		span_equal(a->extensions, b->extensions));
}

/* An answer stands; and a whole hello is not there before its `need`. */
static void check_prefix(struct span wire, size_t len, enum tls_result result,
			 const struct tls_hello *h)
{
	/* of its own size, for the sanitizer to see */
	uint8_t *copy = malloc(len ? len : 1);
	struct tls_hello part;
	enum tls_result r;

	require(copy != NULL);
	if (len)
		memcpy(copy, wire.p, len);
	r = tls_parse_records(span_of(copy, len), &other_scratch, &part);
	if (r != TLS_NEED_MORE)
		require_equal(r, &part, result, h);
	else if (result <= TLS_NO_NAME)
		require(part.need <= wire.len);
	free(copy);
}

static void fuzz_stream(struct span wire, unsigned int mode)
{
	struct tls_hello h;
	enum tls_result result = tls_parse_records(wire, &scratch, &h);

	check(wire, result, &h);
	for (size_t len = mode % 8; len < wire.len; len += 1 + wire.len / 8)
		check_prefix(wire, len, result, &h);
	if (wire.len)
		check_prefix(wire, wire.len - 1, result, &h);
}

/* The message as records of `size`, and what a reader of records must say. */
static void fuzz_message(struct span message, size_t size)
{
	static uint8_t records[RECORDS_MAX];
	struct tls_hello bare, h;
	enum tls_result bare_result, result;
	struct span rest, fragment;
	size_t len = 0;

	bare_result = tls_parse_handshake(message, &bare);
	check(message, bare_result, &bare);
	if (bare_result <= TLS_NO_NAME) /* without what is behind it */
		message.len =
			(size_t)(bare.extensions.p
					 ? bare.extensions.p +
						   bare.extensions.len
					 : bare.compression_methods.p +
						   bare.compression_methods
							   .len) -
			(size_t)message.p;
	rest = message;
	while (rest.len && len + 5 + size <= sizeof(records)) {
		span_take(&rest, rest.len < size ? rest.len : size, &fragment);
		memcpy(records + len, "\x16\x03\x01", 3);
		records[len + 3] = (uint8_t)(fragment.len >> 8);
		records[len + 4] = (uint8_t)fragment.len;
		memcpy(records + len + 5, fragment.p, fragment.len);
		len += 5 + fragment.len;
	}
	if (rest.len)
		return;
	result = tls_parse_records(span_of(records, len), &scratch, &h);
	check(span_of(records, len), result, &h);
	/* where a bare message ends, records may go on, and must not */
	if (bare_result != TLS_MALFORMED)
		require_equal(bare_result, &bare, result, &h);
	else
		require(result == TLS_MALFORMED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t record_sizes[] = { 1, 2, 5, 16384 };
	uint8_t mode;
	struct span input = span_of(data, size);

	if (!span_take_u8(&input, &mode))
		return 0;
	if (mode & 0x80)
		fuzz_message(input, record_sizes[mode & 3]);
	else
		fuzz_stream(input, mode);
	return 0;
}
