/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How an attempt to put a configuration into force went, for the one who
 * asked and for the log: the lines of config_load(), and what failed.
 */
#ifndef HEADGATE_OUTCOME_H
#define HEADGATE_OUTCOME_H

#include <stdbool.h>

#define OUTCOME_LINES_MAX 100 /* the rest is only counted */

enum outcome_kind {
	OUTCOME_OK,
	OUTCOME_BAD_CONFIG,
	OUTCOME_FAILED, /* the configuration is fine, the world is not */
};

struct outcome {
	enum outcome_kind kind;
	char *lines[OUTCOME_LINES_MAX];
	unsigned int nr_lines, nr_more;
	char error[600];
};

/* For the one who asked, and not for the log. */
void outcome_keep(struct outcome *o, const char *line);

/* A config_report_fn; `context` is the outcome. Also logs the line. */
void outcome_report(void *context, bool is_error, const char *line);

/* "warning: …" about the configuration as a whole. */
void outcome_warn(struct outcome *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first failure is the one that is told; returns -errno-like `err`. */
int outcome_fail(struct outcome *o, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * {"ok": true, "generation": 2, "messages": ["…"]}, or {"ok": false,
 * "kind": "configuration" or "runtime", "error": "…", "messages": ["…"]},
 * with its newline, from malloc. NULL: out of memory.
 */
char *outcome_json(const struct outcome *o, unsigned int generation);
void outcome_fini(struct outcome *o);

#endif
