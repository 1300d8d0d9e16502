/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What has to hold for every stream, whatever is in it. The parser is a
 * function of the bytes so far; so the answers to all prefixes say what comes
 * out of every cut of the stream.
 */
#ifndef TLS_CHECKS_H
#define TLS_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "hellos.h"
#include "tls.h"

static const char *const tls_result_names[] = {
	"name", "no-name", "not-tls", "malformed", "need-more",
};

static struct tls_scratch checks_scratch;

/* A xorshift: the same "random" cuts on every machine. */
static uint64_t checks_random_state = 0x9e3779b97f4a7c15;

static inline size_t checks_random(size_t below)
{
	checks_random_state ^= checks_random_state << 13;
	checks_random_state ^= checks_random_state >> 7;
	checks_random_state ^= checks_random_state << 17;
	return (size_t)(checks_random_state % below);
}

static inline bool hello_equal(enum tls_result ra, const struct tls_hello *a,
			       enum tls_result rb, const struct tls_hello *b)
{
	return ra == rb && a->reason == b->reason &&
	       a->name_len == b->name_len &&
	       !memcmp(a->name, b->name, a->name_len + 1) &&
	       span_equal(a->alpn, b->alpn);
}

/* The buffer has exactly the prefix's size, so that ASan sees any over-read. */
static inline enum tls_result parse_prefix(struct span wire, size_t len,
					   struct tls_hello *out,
					   uint8_t **buffer)
{
	*buffer = malloc(len ? len : 1);
	assert_non_null(*buffer);
	if (len)
		memcpy(*buffer, wire.p, len);
	return tls_parse_records(span_of(*buffer, len), &checks_scratch, out);
}

/*
 * Every prefix: need-more with a `need` that is more than there is, then one
 * answer that no further byte changes. Returns how many bytes it took, or 0.
 */
static inline size_t check_prefixes(const char *id, struct span wire)
{
	struct tls_hello full, part;
	struct tls_scratch *scratch = malloc(sizeof(*scratch));
	enum tls_result full_result, result;
	size_t decided = 0;
	uint8_t *buffer;

	assert_non_null(scratch);
	full_result = tls_parse_records(wire, scratch, &full);
	for (size_t len = 0; len <= wire.len; len++) {
		/* of a long stream the middle is looked at in steps */
		if (len > 5000 && len + 300 < wire.len)
			len += 41;
		result = parse_prefix(wire, len, &part, &buffer);
		if (result == TLS_NEED_MORE) {
			if (decided || part.need <= len)
				fail_msg("%s: need-more at %zu", id, len);
			if (full_result <= TLS_NO_NAME && part.need > wire.len)
				fail_msg("%s: need %zu of %zu", id, part.need,
					 wire.len);
		} else if (!hello_equal(result, &part, full_result, &full)) {
			fail_msg("%s: %s at %zu, %s at the end", id,
				 tls_result_names[result], len,
				 tls_result_names[full_result]);
		} else if (!decided) {
			decided = len;
		}
		free(buffer);
	}
	free(scratch);
	return decided;
}

/* Feeds as a connection does: in pieces, and asking only when it is due. */
static inline enum tls_result feed_in_pieces(struct span wire, size_t nr_pieces,
					     struct tls_hello *out)
{
	enum tls_result result = TLS_NEED_MORE;
	size_t len = 0;

	out->need = 0;
	while (len < wire.len && result == TLS_NEED_MORE) {
		size_t left = wire.len - len;

		len += nr_pieces > 1 ? 1 + checks_random(left) : left;
		if (nr_pieces)
			nr_pieces--;
		if (len >= out->need || len == wire.len)
			result = tls_parse_records(span_of(wire.p, len),
						   &checks_scratch, out);
	}
	return result;
}

static inline void check_splits(const char *id, struct span wire,
				unsigned int nr_splits)
{
	struct tls_scratch *scratch = malloc(sizeof(*scratch));
	struct tls_hello full, split;
	enum tls_result full_result, result;

	assert_non_null(scratch);
	full_result = tls_parse_records(wire, scratch, &full);
	for (unsigned int i = 0; i < nr_splits; i++) {
		result = feed_in_pieces(wire, 2 + i % 16, &split);
		if (!hello_equal(result, &split, full_result, &full))
			fail_msg("%s: split %u: %s, not %s", id, i,
				 tls_result_names[result],
				 tls_result_names[full_result]);
	}
	free(scratch);
}

/* A reader of records that believes everything, for sound streams. */
static inline void read_message(struct span wire, struct bytes *message)
{
	struct span fragment = { 0 };
	size_t total = 4;

	message->len = 0;
	while (message->len < total) {
		assert_true(span_skip(&wire, 3));
		assert_true(span_take_vector16(&wire, &fragment));
		bytes_add(message, fragment.p, fragment.len);
		if (message->len >= 4)
			total = 4 + ((size_t)message->data[1] << 16 |
				     (size_t)message->data[2] << 8 |
				     message->data[3]);
	}
	assert_int_equal(message->len, total);
}

/* The same message bare, and in other records: the same answer. */
static inline void check_records(const char *id, struct span wire,
				 unsigned int nr_splits)
{
	struct tls_scratch *scratch = malloc(sizeof(*scratch));
	struct bytes *message = malloc(sizeof(*message));
	struct bytes *records = malloc(sizeof(*records));
	struct tls_hello full, other;
	enum tls_result full_result, result;

	assert_true(scratch && message && records);
	full_result = tls_parse_records(wire, scratch, &full);
	assert_true(full_result <= TLS_NO_NAME);
	read_message(wire, message);
	result = tls_parse_handshake(bytes_span(message), &other);
	if (!hello_equal(result, &other, full_result, &full))
		fail_msg("%s: bare: %s", id, tls_result_names[result]);
	for (unsigned int i = 0; i < nr_splits; i++) {
		size_t size = i ? 1 + checks_random(i % 2 ? 16 : 16384) : 1;

		records_write(records, bytes_span(message), size);
		result = feed_in_pieces(bytes_span(records), i % 16, &other);
		if (!hello_equal(result, &other, full_result, &full))
			fail_msg("%s: records of %zu: %s", id, size,
				 tls_result_names[result]);
	}
	free(records);
	free(message);
	free(scratch);
}

#endif
