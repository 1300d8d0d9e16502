// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The PROXY reader on any bytes, at every length up to theirs: the answer
 * changes once at most, never before the bytes that it said it needs, and what
 * is accepted says the same again when more follows.
 */
#include <stdlib.h>

#include "proxy_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* In memory that ends where the bytes end. */
static enum proxy_result parse(const uint8_t *data, size_t len,
			       struct proxy_header *h)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum proxy_result result;

	CHECK(copy);
	if (len)
		memcpy(copy, data, len);
	result = proxy_parse(span_of(copy, len), h);
	free(copy);
	return result;
}

static void check_header(const struct proxy_header *h)
{
	bool is_v4 = h->source.family == AF_INET;

	CHECK(h->len >= 15 && h->len <= PROXY_READ_MAX && !h->need);
	if (!h->has_addresses) {
		CHECK(h->source.family == AF_UNSPEC);
		CHECK(h->destination.family == AF_UNSPEC);
		return;
	}
	CHECK(is_v4 || h->source.family == AF_INET6);
	CHECK(is_v4 || !IN6_IS_ADDR_V4MAPPED(&h->source.v6));
	CHECK(!h->source.scope && !h->destination.scope);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proxy_header final, h;
	enum proxy_result last = parse(data, size, &final), result;
	/* of a long header every length up to the block, then some */
	size_t n, step, need = 0;
	bool is_decided = false;

	if (last == PROXY_OK) {
		check_header(&final);
		CHECK(final.len <= size);
	}
	for (n = 0; n <= size; n += step) {
		step = n < 300 || n + 1 == final.len ? 1 : 61;
		result = parse(data, n, &h);
		if (result == PROXY_NEED_MORE) {
			CHECK(!is_decided && h.need > n);
			CHECK(h.need <= PROXY_READ_MAX && h.need >= need);
			CHECK(last != PROXY_OK || n < final.len);
			need = h.need;
			continue;
		}
		is_decided = true;
		CHECK(result == last && n >= need);
		if (result == PROXY_OK) {
			CHECK(n >= final.len && h.len == final.len);
			CHECK(address_equal(&h.source, &final.source));
			CHECK(address_equal(&h.destination,
					    &final.destination));
		}
	}
	return 0;
}
