// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "source.h"
#include "statement.h"

static void explain_prefix(struct config_builder *b,
			   const struct config_word *w, int err,
			   const struct prefix *meant)
{
	char text[ADDRESS_TEXT];

	if (err == -EINVAL)
		config_error(b, &w->at,
			     "%s has bits set behind its length; write %s, or "
			     "leave the length out for the one address",
			     config_quote(b, w->text),
			     prefix_format(meant, text, sizeof(text)));
	else
		config_error(b, &w->at,
			     "%s is not a prefix, such as '192.0.2.0/24', "
			     "'2001:db8::/32' or a single address",
			     config_quote(b, w->text));
}

static bool add(struct config_builder *b, struct config_list *list,
		const struct config_word *w, bool is_from_file)
{
	struct config_prefix *entry;
	struct prefix prefix;
	int err = prefix_parse(w->text, &prefix);

	if (err) {
		explain_prefix(b, w, err, &prefix);
		return false;
	}
	entry = config_append(b, list->entries, list->nr_entries);
	if (entry)
		*entry = (struct config_prefix){ w->at, prefix, is_from_file };
	return entry;
}

void config_add_prefix(struct config_builder *b,
		       const struct config_word *prefix)
{
	add(b, b->list, prefix, false);
}

/* What to write in a configuration at the first file's place. */
static const char *below_root(const struct config_builder *b, const char *path)
{
	size_t len = strlen(b->root);

	return strncmp(path, b->root, len) ? path : path + len;
}

void config_add_list_file(struct config_source *s,
			  const struct config_word *path)
{
	struct config_builder *b = s->builder;
	struct config_list_file *file;
	const char *full;
	char **slot;

	if (!b->may_open) {
		config_error(b, &path->at, "`file` is not allowed here");
		return;
	}
	full = config_beside(b, s->name, path->text);
	file = full ? config_append(b, b->list_files, b->nr_list_files) : NULL;
	slot = file ? config_append(b, b->list->files, b->list->nr_files)
		    : NULL;
	if (!slot)
		return;
	*file = (struct config_list_file){ b->list, full, path->at };
	*slot = config_keep(b, below_root(b, full));
}

/* One line: a prefix, a comment behind '#' or ';', both or neither. */
static void read_line(struct config_builder *b, struct config_list *list,
		      char *line, struct config_location at)
{
	struct config_word w = { .text = line + strspn(line, " \t\r") };
	size_t len;

	line[strcspn(line, "#;")] = '\0';
	at.column = (unsigned int)(w.text - line) + 1;
	w.at = at;
	len = strlen(w.text);
	while (len && strchr(" \t\r", w.text[len - 1]))
		len--;
	line[w.text - line + (ptrdiff_t)len] = '\0';
	if (len && !add(b, list, &w, true))
		config_arena_clear(b->line);
}

static void read_lines(struct config_builder *b, struct config_list *list,
		       const char *name, struct config_bytes *bytes)
{
	struct config_location at = { name, 1, 1 };
	char *line = bytes->p, *end = bytes->p + bytes->len, *newline;

	if (bytes->len >= 3 && !memcmp(line, "\xef\xbb\xbf", 3))
		line += 3;
	for (; line < end && !config_has_given_up(b); line = newline + 1) {
		newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			newline = end;
		*newline = '\0';
		if (memchr(line, '\0', (size_t)(newline - line)))
			config_error(b, &at,
				     "a NUL byte; is this a text file?");
		else
			read_line(b, list, line, at);
		at.line++;
	}
}

void config_read_lists(struct config_builder *b)
{
	struct config_bytes bytes;
	const char *name;
	size_t i;

	for (i = 0; i < b->nr_list_files && !config_has_given_up(b); i++) {
		const struct config_list_file *file = &b->list_files[i];

		if (config_read_file(b, file->path, &file->at, NULL, &bytes))
			continue;
		name = config_add_file_name(b, file->path);
		if (name)
			read_lines(b, file->list, name, &bytes);
		free(bytes.p);
	}
}
