/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One file while it is read, and the lexer's place in it. Inside of config/. */
#ifndef HEADGATE_CONFIG_SOURCE_H
#define HEADGATE_CONFIG_SOURCE_H

#include <setjmp.h>
#include <sys/types.h>

#include "builder.h"

struct config_source {
	struct config_builder *builder;
	const struct config_source *includer; /* NULL for the first file */
	const char *name;		      /* as opened */
	dev_t device;
	ino_t inode; /* 0: not a file */
	unsigned int depth;
	jmp_buf out_of_memory; /* from where flex would exit */

	unsigned int line, column;
	int statement; /* the first token of the line */
	int current, previous; /* tokens; 0 at the begin */
	bool is_continued;     /* `current` is a comma of the last line */
	const char *text; /* of `current`; lives as long as the parser */
	size_t text_len;
	bool may_be_name; /* the next word is a name, keyword or not */
	bool was_name;
};

/* Bytes of a file, with two NULs behind them for flex. */
struct config_bytes {
	char *p;
	size_t len;
};

/*
 * Reads a whole file; free(out->p). The error is reported at `at`. The source
 * may be NULL; else it learns which file it is.
 */
int config_read_file(struct config_builder *b, const char *path,
		     const struct config_location *at,
		     struct config_source *source, struct config_bytes *out);

/* Parses a file, or text, into the builder. */
void config_parse_file(struct config_builder *b, const char *path);
void config_parse_text(struct config_builder *b, const char *name,
		       const char *text, size_t len);

/* `include`: reads every file that the pattern names. */
void config_include(struct config_source *s, const struct config_word *pattern);

/* The name to keep in locations; NULL: out of memory. */
const char *config_add_file_name(struct config_builder *b, const char *name);

#endif
