// SPDX-License-Identifier: GPL-2.0-or-later
#include "arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 16384
#define ALIGNMENT _Alignof(max_align_t)

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(max_align_t) unsigned char bytes[];
};

struct config_arena {
	struct block *blocks; /* the first one is filled */
};

struct config_arena *config_arena_new(void)
{
	return calloc(1, sizeof(struct config_arena));
}

static void free_blocks(struct block *b)
{
	while (b) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
}

void config_arena_free(struct config_arena *a)
{
	if (!a)
		return;
	free_blocks(a->blocks);
	free(a);
}

void config_arena_clear(struct config_arena *a)
{
	if (!a->blocks)
		return;
	free_blocks(a->blocks->next);
	a->blocks->next = NULL;
	a->blocks->used = 0;
}

static struct block *new_block(struct config_arena *a, size_t size)
{
	struct block *b;

	if (size < BLOCK_SIZE)
		size = BLOCK_SIZE;
	b = malloc(sizeof(*b) + size);
	if (!b)
		return NULL;
	*b = (struct block){ .next = a->blocks, .size = size };
	a->blocks = b;
	return b;
}

void *config_arena_alloc(struct config_arena *a, size_t size)
{
	struct block *b = a->blocks;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!b || b->size - b->used < size)
		b = new_block(a, size);
	if (!b)
		return NULL;
	p = b->bytes + b->used;
	b->used += size;
	return memset(p, 0, size);
}

char *config_arena_copy(struct config_arena *a, const void *bytes, size_t len)
{
	char *p = config_arena_alloc(a, len + 1);

	if (p && len)
		memcpy(p, bytes, len);
	return p;
}

static bool is_full(size_t nr)
{
	return !(nr & (nr - 1)); /* 0, or a power of two */
}

static size_t next_capacity(size_t nr)
{
	return nr ? 2 * nr : 1;
}

void *config_arena_grow(struct config_arena *a, void *array, size_t nr,
			size_t size)
{
	void *grown;

	if (!is_full(nr))
		return array;
	grown = config_arena_alloc(a, next_capacity(nr) * size);
	if (grown && nr)
		memcpy(grown, array, nr * size);
	return grown;
}

void *config_heap_grow(void *array, size_t nr, size_t size)
{
	if (!is_full(nr))
		return array;
	return reallocarray(array, next_capacity(nr), size);
}
