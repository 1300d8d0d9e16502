// SPDX-License-Identifier: GPL-2.0-or-later
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

#include "grammar.h"
#define YYSTYPE CONFIG_YYSTYPE
#define YYLTYPE CONFIG_YYLTYPE
#include "lexer.h"

#define DEPTH_MAX 8
#define FILE_SIZE_MAX (64UL << 20)

const char *config_add_file_name(struct config_builder *b, const char *name)
{
	struct config *c = b->config;
	char *copy = config_keep(b, name), **slot;

	slot = copy ? config_append(b, c->file_names, c->nr_file_names) : NULL;
	if (!slot)
		return NULL;
	*slot = copy;
	return copy;
}

static int read_all(int fd, struct config_bytes *out)
{
	size_t size = 0;
	ssize_t n;

	do {
		if (out->len + 2 >= size) {
			char *grown;

			size = size ? 2 * size : 16384;
			grown = realloc(out->p, size);
			if (!grown)
				return -ENOMEM;
			out->p = grown;
		}
		n = read(fd, out->p + out->len, size - out->len - 2);
		if (n < 0)
			return -errno;
		out->len += (size_t)n;
		if (out->len > FILE_SIZE_MAX)
			return -EFBIG;
	} while (n);
	memset(out->p + out->len, 0, 2);
	return 0;
}

int config_read_file(struct config_builder *b, const char *path,
		     const struct config_location *at,
		     struct config_source *source, struct config_bytes *out)
{
	struct stat st;
	int fd, err = 0;

	*out = (struct config_bytes){ 0 };
	/* a pipe without a writer must not hold up a daemon that reloads */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = -EISDIR;
	else if (S_ISFIFO(st.st_mode))
		err = -EBADF;
	else
		err = read_all(fd, out);
	if (fd >= 0)
		close(fd);
	if (!err && source) {
		source->device = st.st_dev;
		source->inode = st.st_ino;
	}
	if (err) {
		config_error(b, at, "cannot read %s: %s", config_quote(b, path),
			     err == -EFBIG ? "it is larger than 64MiB" :
			     err == -EBADF ? "it is a pipe" :
					     strerror(-err));
		free(out->p);
		out->p = NULL;
	}
	return err;
}

/* Where UTF-8 text begins; what other editors write is named. */
static size_t skip_mark(struct config_builder *b, struct config_source *s,
			const struct config_bytes *bytes)
{
	struct config_location at = { s->name, 1, 1 };

	if (bytes->len >= 3 && !memcmp(bytes->p, "\xef\xbb\xbf", 3))
		return 3;
	if (bytes->len < 2 || (memcmp(bytes->p, "\xff\xfe", 2) &&
			       memcmp(bytes->p, "\xfe\xff", 2)))
		return 0;
	config_error(b, &at, "this file is UTF-16; save it as UTF-8");
	return bytes->len;
}

static void parse(struct config_source *s, const struct config_bytes *bytes)
{
	struct config_builder *b = s->builder;
	size_t begin = skip_mark(b, s, bytes);
	yyscan_t scanner;

	s->line = 1;
	s->column = 1;
	if (config_yylex_init_extra(s, &scanner)) {
		b->is_out_of_memory = true;
		return;
	}
	if (setjmp(s->out_of_memory)) {
		b->is_out_of_memory = true;
	} else {
		config_yy_scan_buffer(bytes->p + begin, bytes->len - begin + 2,
				      scanner);
		config_yyparse(b, s, scanner);
	}
	config_yylex_destroy(scanner);
}

void config_parse_file(struct config_builder *b, const char *path)
{
	struct config_source s = { .builder = b };
	struct config_bytes bytes;
	struct config_location whole;
	const char *slash;

	s.name = config_add_file_name(b, path);
	if (!s.name)
		return;
	slash = strrchr(s.name, '/');
	if (slash)
		b->root = config_arena_copy(b->config->memory, s.name,
					    (size_t)(slash - s.name) + 1);
	whole = (struct config_location){ s.name, 1, 1 };
	if (!b->root)
		b->is_out_of_memory = true;
	else if (!config_read_file(b, path, &whole, &s, &bytes)) {
		parse(&s, &bytes);
		free(bytes.p);
	}
}

void config_parse_text(struct config_builder *b, const char *name,
		       const char *text, size_t len)
{
	struct config_source s = { .builder = b };
	struct config_bytes bytes = { .len = len };

	s.name = config_add_file_name(b, name);
	bytes.p = len <= FILE_SIZE_MAX ? malloc(len + 2) : NULL;
	if (!s.name || !bytes.p) {
		b->is_out_of_memory = true;
		return;
	}
	if (len)
		memcpy(bytes.p, text, len);
	memset(bytes.p + len, 0, 2);
	parse(&s, &bytes);
	free(bytes.p);
}

/* A file that is being read already, here or further out. */
static const struct config_source *find_cycle(const struct config_source *s)
{
	const struct config_source *outer;

	for (outer = s->includer; outer; outer = outer->includer)
		if (outer->inode && outer->inode == s->inode &&
		    outer->device == s->device)
			return outer;
	return NULL;
}

static void include_file(struct config_source *includer, const char *path,
			 const struct config_location *at)
{
	struct config_builder *b = includer->builder;
	struct config_source s = {
		.builder = b,
		.includer = includer,
		.depth = includer->depth + 1,
	};
	struct config_bytes bytes;

	if (config_read_file(b, path, at, &s, &bytes))
		return;
	if (find_cycle(&s)) {
		config_error(b, at, "%s includes itself%s",
			     config_quote(b, path),
			     s.inode == includer->inode
				     ? ""
				     : " by way of this file");
		goto out;
	}
	s.name = config_add_file_name(b, path);
	if (s.name)
		parse(&s, &bytes);
out:
	free(bytes.p);
}

void config_include(struct config_source *s, const struct config_word *pattern)
{
	struct config_builder *b = s->builder;
	struct config_location at = pattern->at;
	glob_t found;
	char *path;
	size_t i;
	int err;

	if (!b->may_open) {
		config_error(b, &at, "`include` is not allowed here");
		return;
	}
	if (s->depth == DEPTH_MAX) {
		config_error(b, &at, "`include` is nested more than %d deep",
			     DEPTH_MAX);
		return;
	}
	path = config_beside(b, s->name, pattern->text);
	if (!path)
		return;
	if (!strpbrk(path, "*?[")) {
		include_file(s, path, &at);
		return;
	}
	/* a pattern may match nothing: an empty conf.d is fine */
	err = glob(path, 0, NULL, &found);
	for (i = 0; !err && i < found.gl_pathc && !config_has_given_up(b); i++)
		include_file(s, found.gl_pathv[i], &at);
	if (!err)
		globfree(&found);
	if (err == GLOB_NOSPACE)
		b->is_out_of_memory = true;
	if (err == GLOB_ABORTED)
		config_error(b, &at, "cannot read the directory of %s",
			     config_quote(b, path));
}
