// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_MAX 60

struct config_message {
	struct config_location at;
	unsigned int file; /* its place in the order of opening */
	size_t order;
	bool is_error;
	char *text;
};

static unsigned int order_of_file(const struct config *c, const char *file)
{
	unsigned int i;

	for (i = 0; i < c->nr_file_names; i++)
		if (c->file_names[i] == file)
			break;
	return i;
}

__attribute__((format(printf, 4, 0))) static void
add(struct config_builder *b, bool is_error, const struct config_location *at,
    const char *format, va_list args)
{
	struct config_message *m;
	size_t order = b->nr_messages;
	char *text;

	if (vasprintf(&text, format, args) < 0) {
		b->is_out_of_memory = true;
		return;
	}
	m = config_append(b, b->messages, b->nr_messages);
	if (!m) {
		free(text);
		return;
	}
	*m = (struct config_message){
		.at = *at,
		.file = order_of_file(b->config, at->file),
		.order = order,
		.is_error = is_error,
		.text = text,
	};
}

void config_error(struct config_builder *b, const struct config_location *at,
		  const char *format, ...)
{
	va_list args;

	if (b->nr_errors >= CONFIG_ERRORS_MAX)
		return;
	b->nr_errors++;
	va_start(args, format);
	add(b, true, at, format, args);
	va_end(args);
}

void config_warn(struct config_builder *b, const struct config_location *at,
		 const char *format, ...)
{
	va_list args;

	b->nr_warnings++;
	if (b->nr_warnings > CONFIG_WARNINGS_MAX) {
		if (b->nr_warnings == CONFIG_WARNINGS_MAX + 1)
			b->unshown_at = *at;
		return;
	}
	va_start(args, format);
	add(b, false, at, format, args);
	va_end(args);
}

const char *config_quote_bytes(struct config_builder *b, const char *text,
			       size_t len)
{
	size_t i, shown = len > QUOTE_MAX ? QUOTE_MAX : len;
	char *out = config_arena_alloc(b->line, 4 * shown + sizeof("''..."));
	char *p = out;

	if (!out) {
		b->is_out_of_memory = true;
		return "";
	}
	*p++ = '\'';
	for (i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < ' ' || c > '~')
			p += sprintf(p, "\\x%02x", c);
		else
			*p++ = (char)c;
	}
	strcpy(p, shown < len ? "...'" : "'");
	return out;
}

const char *config_quote(struct config_builder *b, const char *text)
{
	return config_quote_bytes(b, text, strlen(text));
}

const char *config_place(struct config_builder *b,
			 const struct config_location *at)
{
	size_t size = strlen(at->file) + 16;
	char *out = config_arena_alloc(b->line, size);

	if (!out) {
		b->is_out_of_memory = true;
		return "";
	}
	snprintf(out, size, "%s:%u", at->file, at->line);
	return out;
}

static int compare_unsigned(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *a, const void *b)
{
	const struct config_message *x = a, *y = b;
	int d = compare_unsigned(x->file, y->file);

	if (!d)
		d = compare_unsigned(x->at.line, y->at.line);
	if (!d)
		d = compare_unsigned(x->at.column, y->at.column);
	return d ? d : compare_unsigned(x->order, y->order);
}

static void hand_on(const struct config_message *m, config_report_fn *report,
		    void *context)
{
	const char *kind = m->is_error ? "error" : "warning";
	char *line;
	int len;

	len = asprintf(&line, "%s:%u:%u: %s: %s", m->at.file, m->at.line,
		       m->at.column, kind, m->text);
	report(context, m->is_error, len < 0 ? m->text : line);
	if (len >= 0)
		free(line);
}

static void hand_on_rest(struct config_builder *b, config_report_fn *report,
			 void *context)
{
	struct config_message last = { .at = b->unshown_at };
	char text[64];

	last.text = text;
	if (b->nr_warnings > CONFIG_WARNINGS_MAX) {
		snprintf(text, sizeof(text), "and %u more warnings",
			 b->nr_warnings - CONFIG_WARNINGS_MAX);
		hand_on(&last, report, context);
	}
	if (b->nr_errors >= CONFIG_ERRORS_MAX) {
		snprintf(text, sizeof(text), "%u errors; the rest is not read",
			 b->nr_errors);
		last.at = b->messages[b->nr_messages - 1].at;
		last.is_error = true;
		hand_on(&last, report, context);
	}
}

void config_report(struct config_builder *b, config_report_fn *report,
		   void *context)
{
	size_t i;

	if (!report)
		return;
	if (b->nr_messages)
		qsort(b->messages, b->nr_messages, sizeof(*b->messages),
		      compare);
	for (i = 0; i < b->nr_messages; i++)
		hand_on(&b->messages[i], report, context);
	hand_on_rest(b, report, context);
}

void config_report_free(struct config_builder *b)
{
	size_t i;

	for (i = 0; i < b->nr_messages; i++)
		free(b->messages[i].text);
	free(b->messages);
}
