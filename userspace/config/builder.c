// SPDX-License-Identifier: GPL-2.0-or-later
#include "builder.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

struct config_builder *config_builder_new(void)
{
	struct config_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->config = calloc(1, sizeof(*b->config));
	b->line = config_arena_new();
	if (b->config)
		b->config->memory = config_arena_new();
	if (!b->config || !b->line || !b->config->memory) {
		config_builder_free(b);
		return NULL;
	}
	b->root = "";
	return b;
}

void config_builder_free(struct config_builder *b)
{
	if (!b)
		return;
	config_report_free(b);
	free(b->references);
	free(b->list_files);
	config_arena_free(b->line);
	config_free(b->config);
	free(b);
}

char *config_keep(struct config_builder *b, const char *text)
{
	char *copy = config_arena_copy(b->config->memory, text, strlen(text));

	if (!copy)
		b->is_out_of_memory = true;
	return copy;
}

void *config_append_to(struct config_builder *b, void *array, size_t size,
		       size_t nr)
{
	unsigned char *grown;

	memcpy(&grown, array, sizeof(grown));
	grown = config_heap_grow(grown, nr, size);
	if (!grown) {
		b->is_out_of_memory = true;
		return NULL;
	}
	memcpy(array, &grown, sizeof(grown));
	return memset(grown + nr * size, 0, size);
}

bool config_once(struct config_builder *b, enum config_once key,
		 const struct config_location *at, const char *what)
{
	if (b->once[key].line) {
		config_error(b, at, "`%s` was set before, at %s", what,
			     config_place(b, &b->once[key]));
		return false;
	}
	b->once[key] = *at;
	return true;
}

void config_refer(struct config_builder *b, const struct config_word *name,
		  enum config_reference_kind kind, unsigned int index)
{
	struct config_reference *r;
	char *copy = config_keep(b, name->text);

	r = copy ? config_append(b, b->references, b->nr_references) : NULL;
	if (r)
		*r = (struct config_reference){ copy, name->at, kind, index };
}

char *config_beside(struct config_builder *b, const char *file,
		    const char *path)
{
	const char *slash = strrchr(file, '/');
	size_t dir_len = slash && path[0] != '/' ? (size_t)(slash - file) + 1
						 : 0;
	char *joined = config_arena_alloc(b->config->memory,
					  dir_len + strlen(path) + 1);

	if (!joined) {
		b->is_out_of_memory = true;
		return NULL;
	}
	memcpy(joined, file, dir_len);
	strcpy(joined + dir_len, path);
	return joined;
}
