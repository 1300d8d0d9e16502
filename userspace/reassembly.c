// SPDX-License-Identifier: GPL-2.0-or-later
#include "reassembly.h"

#include <errno.h>
#include <stdlib.h>

struct reassembly_chunk {
	struct reassembly_chunk *next;
	uint32_t seq;
	size_t len;
	uint8_t bytes[];
};

/* Serial arithmetic (RFC 9293, 3.4). */
static int64_t offset_of(const struct reassembly *r, uint32_t seq)
{
	return (int32_t)(seq - r->base);
}

static int grow(struct reassembly *r, size_t len)
{
	size_t size = r->size ? r->size : 2048;
	uint8_t *bytes;

	while (size < len)
		size *= 2;
	if (size == r->size)
		return 0;
	bytes = realloc(r->bytes, size);
	if (!bytes)
		return -ENOMEM;
	r->bytes = bytes;
	r->size = size;
	return 0;
}

/* The bytes at `offset`, of which those before the end are there already. */
static int append(struct reassembly *r, size_t offset, struct span s)
{
	int err;

	if (!span_skip(&s, r->len - offset) || !s.len)
		return 0;
	err = grow(r, r->len + s.len);
	if (err)
		return err;
	memcpy(r->bytes + r->len, s.p, s.len);
	r->len += s.len;
	return 0;
}

static int put_later(struct reassembly *r, uint32_t seq, struct span s)
{
	struct reassembly_chunk **at = &r->later, *chunk;

	if (r->nr_later == REASSEMBLY_LATER_MAX)
		return -ENOSPC;
	while (*at && offset_of(r, (*at)->seq) <= offset_of(r, seq))
		at = &(*at)->next;
	chunk = malloc(sizeof(*chunk) + s.len);
	if (!chunk)
		return -ENOMEM;
	chunk->seq = seq;
	chunk->len = s.len;
	memcpy(chunk->bytes, s.p, s.len);
	chunk->next = *at;
	*at = chunk;
	r->nr_later++;
	r->later_bytes += sizeof(*chunk) + s.len;
	return 0;
}

static void drop_first_later(struct reassembly *r)
{
	struct reassembly_chunk *chunk = r->later;

	r->later = chunk->next;
	r->nr_later--;
	r->later_bytes -= sizeof(*chunk) + chunk->len;
	free(chunk);
}

/* What waited, as far as it now fits; what lies before the base is gone. */
static int pull_later(struct reassembly *r)
{
	while (r->later) {
		struct span s = span_of(r->later->bytes, r->later->len);
		int64_t offset = offset_of(r, r->later->seq);
		int err = 0;

		if (offset > (int64_t)r->len)
			break;
		if (offset >= 0)
			err = append(r, (size_t)offset, s);
		else if (span_skip(&s, (size_t)-offset))
			err = append(r, 0, s);
		if (err)
			return err;
		drop_first_later(r);
	}
	return 0;
}

/* Begins anew at `seq`; what was in order waits for what is missing now. */
static int rebase(struct reassembly *r, uint32_t seq)
{
	struct span s = span_of(r->bytes, r->len);
	uint32_t old = r->base;
	int err;

	r->len = 0;
	r->base = seq;
	if (!s.len)
		return pull_later(r);
	err = put_later(r, old, s);
	return err ? err : pull_later(r);
}

int reassembly_anchor(struct reassembly *r, uint32_t seq)
{
	bool has_moved = r->has_base && r->base != seq;

	r->is_anchored = r->has_base = true;
	if (has_moved)
		return rebase(r, seq);
	r->base = seq;
	return 0;
}

int reassembly_add(struct reassembly *r, uint32_t seq, struct span payload)
{
	int64_t offset;
	int err = 0;

	if (!r->has_base) {
		r->base = seq;
		r->has_base = true;
	}
	offset = offset_of(r, seq);
	if (offset < 0 && !r->is_anchored && -offset < REASSEMBLY_MAX) {
		err = rebase(r, seq);
		offset = 0;
	}
	if (err)
		return err;
	if (offset < 0) {
		if (!span_skip(&payload, (size_t)-offset))
			return 0;
		offset = 0;
	}
	if (offset + (int64_t)payload.len > REASSEMBLY_MAX)
		return -ENOSPC;
	if (offset > (int64_t)r->len)
		return put_later(r, (uint32_t)(r->base + offset), payload);
	err = append(r, (size_t)offset, payload);
	return err ? err : pull_later(r);
}

size_t reassembly_memory(const struct reassembly *r)
{
	return r->size + r->later_bytes;
}

void reassembly_fini(struct reassembly *r)
{
	while (r->later)
		drop_first_later(r);
	free(r->bytes);
	memset(r, 0, sizeof(*r));
}
