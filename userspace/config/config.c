// SPDX-License-Identifier: GPL-2.0-or-later
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "source.h"
#include "statement.h"
#include "validate.h"

static void free_list(struct config_list *l)
{
	free(l->entries);
	free(l->files);
}

void config_free(struct config *c)
{
	if (!c)
		return;
	free(c->interfaces);
	free(c->listens);
	free(c->guards);
	free(c->backends);
	free(c->routes);
	free_list(&c->allow);
	free_list(&c->block);
	free_list(&c->trust_proxy);
	free(c->file_names);
	free(c->backends_by_name);
	config_arena_free(c->memory);
	free(c);
}

static struct config *out_of_memory(config_report_fn *report, void *context)
{
	if (report)
		report(context, true, "error: out of memory");
	return NULL;
}

/* Validates and reports; frees the builder. */
static struct config *finish(struct config_builder *b, config_report_fn *report,
			     void *context)
{
	struct config *c = NULL;

	if (!config_has_given_up(b))
		config_read_lists(b);
	if (!config_has_given_up(b))
		config_validate(b);
	config_report(b, report, context);
	if (b->is_out_of_memory) {
		out_of_memory(report, context);
	} else if (!b->nr_errors) {
		c = b->config;
		b->config = NULL;
	}
	config_builder_free(b);
	return c;
}

struct config *config_load(const char *path, config_report_fn *report,
			   void *context)
{
	struct config_builder *b = config_builder_new();

	if (!b)
		return out_of_memory(report, context);
	b->may_open = true;
	config_set_defaults(b->config);
	config_parse_file(b, path);
	return finish(b, report, context);
}

static struct config *parse(const char *name, struct config_bytes text,
			    bool may_open, config_report_fn *report,
			    void *context)
{
	struct config_builder *b = config_builder_new();

	if (!b)
		return out_of_memory(report, context);
	b->may_open = may_open;
	config_set_defaults(b->config);
	config_parse_text(b, name, text.p, text.len);
	return finish(b, report, context);
}

struct config *config_parse(const char *name, const char *text, size_t len,
			    config_report_fn *report, void *context)
{
	return parse(name, (struct config_bytes){ (char *)text, len }, true,
		     report, context);
}

struct config *config_parse_flat(const char *name, const char *text, size_t len,
				 config_report_fn *report, void *context)
{
	return parse(name, (struct config_bytes){ (char *)text, len }, false,
		     report, context);
}

int config_find_backend(const struct config *c, const char *name)
{
	unsigned int low = 0, high = c->backends_by_name ? c->nr_backends : 0;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;
		unsigned int index = c->backends_by_name[middle];
		int d = strcmp(name, c->backends[index].name);

		if (!d)
			return (int)index;
		if (d < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}
