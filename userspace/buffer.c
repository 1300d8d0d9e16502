// SPDX-License-Identifier: GPL-2.0-or-later
#include "buffer.h"

#include <errno.h>
#include <stdlib.h>

enum { KEPT_SMALL = 32, KEPT_LARGE = 8 };

struct buffer *buffer_get(struct buffer_pool *p, size_t size)
{
	bool is_small = size <= BUFFER_SMALL;
	struct buffer **list = is_small ? &p->small : &p->large;
	unsigned int *nr = is_small ? &p->nr_small : &p->nr_large;
	struct buffer *b = *list;

	if (b) {
		*list = b->next;
		(*nr)--;
	} else {
		uint32_t room = is_small ? BUFFER_SMALL : BUFFER_LARGE;

		b = malloc(sizeof(*b) + room);
		if (!b)
			return NULL;
		b->size = room;
	}
	b->start = b->end = 0;
	return b;
}

void buffer_put(struct buffer_pool *p, struct buffer *b)
{
	if (!b)
		return;
	if (b->size == BUFFER_SMALL && p->nr_small < KEPT_SMALL) {
		b->next = p->small;
		p->small = b;
		p->nr_small++;
	} else if (b->size == BUFFER_LARGE && p->nr_large < KEPT_LARGE) {
		b->next = p->large;
		p->large = b;
		p->nr_large++;
	} else {
		free(b);
	}
}

static void free_list(struct buffer *b)
{
	while (b) {
		struct buffer *next = b->next;

		free(b);
		b = next;
	}
}

void buffer_pool_fini(struct buffer_pool *p)
{
	free_list(p->small);
	free_list(p->large);
	*p = (struct buffer_pool){ 0 };
}

int buffer_append(struct buffer_pool *p, struct buffer **b, struct span bytes)
{
	struct span kept = *b ? buffer_span(*b) : span_of(NULL, 0);
	struct buffer *larger;

	if (kept.len + bytes.len > BUFFER_LARGE)
		return -ENOBUFS;
	if (*b && bytes.len <= (*b)->size - (*b)->end) {
		memcpy((*b)->bytes + (*b)->end, bytes.p, bytes.len);
		(*b)->end += (uint32_t)bytes.len;
		return 0;
	}
	larger = buffer_get(p, kept.len + bytes.len);
	if (!larger)
		return -ENOMEM;
	if (kept.len)
		memcpy(larger->bytes, kept.p, kept.len);
	memcpy(larger->bytes + kept.len, bytes.p, bytes.len);
	larger->end = (uint32_t)(kept.len + bytes.len);
	buffer_put(p, *b);
	*b = larger;
	return 0;
}
