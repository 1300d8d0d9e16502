// SPDX-License-Identifier: GPL-2.0-or-later
#include "buffer.h"

#include <errno.h>
#include <sys/mman.h>

enum { KEPT_SMALL = 256, KEPT_LARGE = 8 };

static struct buffer *map(size_t room)
{
	struct buffer *b = mmap(NULL, sizeof(*b) + room, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (b == MAP_FAILED)
		return NULL;
	b->size = (uint32_t)room;
	return b;
}

static void unmap(struct buffer *b)
{
	munmap(b, sizeof(*b) + b->size);
}

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
		b = map(is_small ? BUFFER_SMALL : BUFFER_LARGE);
		if (!b)
			return NULL;
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
		unmap(b);
	}
}

static void unmap_list(struct buffer *b)
{
	while (b) {
		struct buffer *next = b->next;

		unmap(b);
		b = next;
	}
}

void buffer_pool_trim(struct buffer_pool *p)
{
	unmap_list(p->small);
	unmap_list(p->large);
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
