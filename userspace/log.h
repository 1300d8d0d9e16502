/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log lines, logfmt or JSON, to stderr (with a priority prefix when stderr is
 * the journal's). Writers put whole lines into rings; one thread writes them
 * out. A reader that blocks costs lines, which are counted, never traffic.
 */
#ifndef HEADGATE_LOG_H
#define HEADGATE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

#include "address.h"
#include "config/config.h"
#include "span.h"

#define LOG_LINE_MAX 1536

/* One line being built; too long a value is cut, the line stays well formed. */
struct log_line {
	enum config_log_format format;
	int priority; /* LOG_ERR … LOG_DEBUG */
	size_t len;
	char text[LOG_LINE_MAX];
};

/* `event` is the first value: time=… level=info event=connection … */
void log_line_begin(struct log_line *l, enum config_log_format format,
		    int priority, const char *event);
/* Quoted where the format needs it; bytes outside printable ASCII as \xHH. */
void log_line_text(struct log_line *l, const char *key, struct span value);
void log_line_number(struct log_line *l, const char *key, uint64_t value);
void log_line_seconds(struct log_line *l, const char *key, uint64_t ms);
void log_line_address(struct log_line *l, const char *key,
		      const struct address *a);
void log_line_end(struct log_line *l); /* closes it, with its newline */

/* Many lines, one producer thread, the log thread as consumer. */
struct log_ring;
struct log_ring *log_ring_new(size_t size); /* a power of two; NULL: memory */
/* false: full, and the line is lost. Never blocks, never allocates. */
bool log_ring_write(struct log_ring *r, const struct log_line *l);

/*
 * The thread that drains all rings. log_stop() writes out what is left, for
 * half a second at most, and ends it. Before log_start() and after
 * log_stop(), log_say() writes to stderr itself.
 */
int log_start(void);
void log_stop(void);
void log_set_format(enum config_log_format format);

/* A line of the control plane, from any thread but a worker's hot path. */
void log_say(int priority, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
