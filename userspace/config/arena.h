/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that is freed all at once: what a configuration consists of, and
 * what a statement needs while it is read.
 */
#ifndef HEADGATE_CONFIG_ARENA_H
#define HEADGATE_CONFIG_ARENA_H

#include <stddef.h>

struct config_arena;

struct config_arena *config_arena_new(void);
void config_arena_free(struct config_arena *a);

/* Zeroed; NULL: out of memory. */
void *config_arena_alloc(struct config_arena *a, size_t size);

/* With a NUL behind the `len` bytes. */
char *config_arena_copy(struct config_arena *a, const void *bytes, size_t len);

/* Keeps the newest block, so that a reader of lines allocates but once. */
void config_arena_clear(struct config_arena *a);

/*
 * Makes room for element `nr` of an array of `nr`; the capacity is the next
 * power of two, so nothing but `nr` need be kept. NULL: out of memory, and
 * the array is as it was. The first is for arrays of the arena, the second
 * for long ones, from malloc().
 */
void *config_arena_grow(struct config_arena *a, void *array, size_t nr,
			size_t size);
void *config_heap_grow(void *array, size_t nr, size_t size);

#endif
