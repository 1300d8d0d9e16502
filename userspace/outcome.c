// SPDX-License-Identifier: GPL-2.0-or-later
#include "outcome.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

void outcome_keep(struct outcome *o, const char *line)
{
	char *copy;

	if (o->nr_lines == OUTCOME_LINES_MAX) {
		o->nr_more++;
		return;
	}
	copy = strdup(line);
	if (copy)
		o->lines[o->nr_lines++] = copy;
}

void outcome_report(void *context, bool is_error, const char *line)
{
	struct outcome *o = context;

	log_say(is_error ? LOG_ERR : LOG_WARNING, "%s", line);
	outcome_keep(o, line);
	if (!is_error)
		return;
	if (o->kind == OUTCOME_OK)
		snprintf(o->error, sizeof(o->error), "%s", line);
	o->kind = OUTCOME_BAD_CONFIG;
}

void outcome_warn(struct outcome *o, const char *format, ...)
{
	char text[600] = "warning: ";
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + len, sizeof(text) - len, format, ap);
	va_end(ap);
	log_say(LOG_WARNING, "%s", text + len);
	outcome_keep(o, text);
}

int outcome_fail(struct outcome *o, int err, const char *format, ...)
{
	va_list ap;

	if (o->kind != OUTCOME_OK)
		return err;
	o->kind = OUTCOME_FAILED;
	va_start(ap, format);
	vsnprintf(o->error, sizeof(o->error), format, ap);
	va_end(ap);
	log_say(LOG_ERR, "%s", o->error);
	return err;
}

/* A file may hold bytes that JSON has no place for. */
static json_t *text_json(const char *text)
{
	json_t *j = json_string(text);
	char *clean, *p;

	if (j)
		return j;
	clean = strdup(text);
	if (!clean)
		return NULL;
	for (p = clean; *p; p++)
		if (*p & 0x80)
			*p = '?';
	j = json_string(clean);
	free(clean);
	return j;
}

static json_t *lines_json(const struct outcome *o)
{
	json_t *lines = json_array();
	unsigned int i;

	for (i = 0; i < o->nr_lines; i++)
		json_array_append_new(lines, text_json(o->lines[i]));
	if (o->nr_more)
		json_array_append_new(
			lines, json_sprintf("and %u more lines like these",
					    o->nr_more));
	return lines;
}

char *outcome_json(const struct outcome *o, unsigned int generation)
{
	json_t *j = json_object();
	char *text, *line = NULL;

	json_object_set_new(j, "ok", json_boolean(o->kind == OUTCOME_OK));
	json_object_set_new(j, "generation", json_integer(generation));
	if (o->kind != OUTCOME_OK) {
		json_object_set_new(j, "kind",
				    json_string(o->kind == OUTCOME_FAILED
							? "runtime"
							: "configuration"));
		json_object_set_new(j, "error", text_json(o->error));
	}
	json_object_set_new(j, "messages", lines_json(o));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

void outcome_fini(struct outcome *o)
{
	unsigned int i;

	for (i = 0; i < o->nr_lines; i++)
		free(o->lines[i]);
	*o = (struct outcome){ 0 };
}
