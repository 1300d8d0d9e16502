// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All that `headgate sniff` does with a file, and with one that comes in two
 * pieces: the reports have to be the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "sniffer.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void count(void *context, const struct sniffer_report *r)
{
	uint64_t *sum = context;

	require(r->hello->name_len <= TLS_NAME_MAX);
	require((r->result == TLS_NAME) == (r->hello->name_len > 0));
	*sum = *sum * 31 + (uint64_t)r->result * 7 + r->hello->name_len + 1;
}

/* Returns where the reading of this piece ended. */
static enum capture_result feed(struct capture *c, struct sniffer *s,
				struct span piece, size_t *taken)
{
	/* of its own size, for the sanitizer to see */
	uint8_t *copy = malloc(piece.len ? piece.len : 1);
	struct capture_frame frame;
	enum capture_result result;
	struct span rest;

	require(copy != NULL);
	if (piece.len)
		memcpy(copy, piece.p, piece.len);
	rest = span_of(copy, piece.len);
	while ((result = capture_next(c, &rest, &frame)) == CAPTURE_FRAME)
		require(!sniffer_add(s, &frame));
	require(rest.len <= piece.len);
	*taken = piece.len - rest.len;
	free(copy);
	return result;
}

static uint64_t run(struct span file, size_t cut)
{
	static const struct sniffer_limits limits = { 8, 20000 };
	static struct capture c;
	struct sniffer *s;
	uint64_t sum = 1;
	size_t taken = 0;

	s = sniffer_new(&limits, count, &sum);
	require(s != NULL);
	capture_init(&c);
	if (!cut || feed(&c, s, span_of(file.p, cut), &taken) == CAPTURE_MORE) {
		span_skip(&file, taken);
		feed(&c, s, file, &taken);
	}
	sniffer_finish(s);
	sniffer_free(s);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span file = span_of(data, size);
	uint8_t cut;

	if (!span_take_u8(&file, &cut))
		return 0;
	require(run(file, 0) == run(file, file.len * cut / 256));
	return 0;
}
