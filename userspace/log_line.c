// SPDX-License-Identifier: GPL-2.0-or-later
/* One log line, from its first byte to its newline. */
#include "log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The end of a line, a brace and a newline, always has its place. */
#define END_MAX 2

/* systemd.exec(5): set, and equal to stderr, when the journal reads us. */
static bool is_journal(void)
{
	static _Atomic int known = -1;
	const char *text = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;
	int answer;

	answer = atomic_load_explicit(&known, memory_order_relaxed);
	if (answer >= 0)
		return answer;
	answer = text &&
		 sscanf(text, "%" SCNuMAX ":%" SCNuMAX, &dev, &ino) == 2 &&
		 !fstat(STDERR_FILENO, &st) && st.st_dev == dev &&
		 st.st_ino == ino;
	atomic_store_explicit(&known, answer, memory_order_relaxed);
	return answer;
}

static size_t room(const struct log_line *l)
{
	return LOG_LINE_MAX - END_MAX - l->len;
}

static bool append(struct log_line *l, const char *text, size_t len)
{
	if (len > room(l))
		return false;
	memcpy(&l->text[l->len], text, len);
	l->len += len;
	return true;
}

static const char *level_name(int priority)
{
	switch (priority) {
	case LOG_EMERG:
	case LOG_ALERT:
	case LOG_CRIT:
	case LOG_ERR:
		return "error";
	case LOG_WARNING:
		return "warning";
	case LOG_DEBUG:
		return "debug";
	default:
		return "info";
	}
}

/* RFC 3339 in UTC. The calendar is asked once a second and thread. */
static void append_time(struct log_line *l)
{
	static _Thread_local time_t second = -1;
	static _Thread_local char date[48];
	struct timespec now;
	struct tm tm;
	char text[64];
	int len;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec != second) {
		second = now.tv_sec;
		gmtime_r(&second, &tm);
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	}
	len = snprintf(text, sizeof(text),
		       l->format == LOG_JSON ? "\"time\":\"%s.%03uZ\","
					     : "time=%s.%03uZ ",
		       date, (unsigned int)(now.tv_nsec / 1000000));
	append(l, text, (size_t)len);
}

void log_line_begin(struct log_line *l, enum config_log_format format,
		    int priority, const char *event)
{
	char text[64];
	int len;

	l->format = format;
	l->priority = priority;
	l->len = 0;
	if (is_journal()) {
		len = snprintf(text, sizeof(text), "<%d>", priority & 7);
		append(l, text, (size_t)len);
	}
	if (format == LOG_JSON)
		append(l, "{", 1);
	if (!is_journal())
		append_time(l);
	len = snprintf(text, sizeof(text),
		       format == LOG_JSON ? "\"level\":\"%s\"" : "level=%s",
		       level_name(priority));
	append(l, text, (size_t)len);
	log_line_text(l, "event", span_of_text(event));
}

/* false: not even an empty value would fit, so the pair is left out. */
static bool append_key(struct log_line *l, const char *key, size_t value_len)
{
	bool is_json = l->format == LOG_JSON;
	size_t len = strlen(key);

	if (len + 4 + value_len > room(l))
		return false;
	append(l, is_json ? ",\"" : " ", is_json ? 2 : 1);
	append(l, key, len);
	append(l, is_json ? "\":" : "=", is_json ? 2 : 1);
	return true;
}

/*
 * A quote is \", and whatever is no printable ASCII, or a backslash, is \xHH:
 * so each value reads back in one way only. JSON knows no \x, so there the
 * backslash is itself escaped, and the decoded text is the same.
 */
static size_t escape(uint8_t c, bool is_json, char out[8])
{
	if (c == '"') {
		memcpy(out, "\\\"", 2);
		return 2;
	}
	if (c >= 0x20 && c < 0x7f && c != '\\') {
		out[0] = (char)c;
		return 1;
	}
	return (size_t)snprintf(out, 8, is_json ? "\\\\x%02x" : "\\x%02x", c);
}

static bool needs_quotes(struct span value)
{
	size_t i;

	for (i = 0; i < value.len; i++) {
		uint8_t c = value.p[i];

		if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '=')
			return true;
	}
	return value.len == 0;
}

void log_line_text(struct log_line *l, const char *key, struct span value)
{
	bool is_json = l->format == LOG_JSON;
	bool has_quotes = is_json || needs_quotes(value);
	size_t i;

	if (!append_key(l, key, 2))
		return;
	if (has_quotes)
		append(l, "\"", 1);
	for (i = 0; i < value.len; i++) {
		char c[8];
		size_t len = escape(value.p[i], is_json, c);

		/* one byte stays for the closing quote */
		if (len + 1 > room(l))
			break;
		append(l, c, len);
	}
	if (has_quotes)
		append(l, "\"", 1);
}

static void append_plain(struct log_line *l, const char *key, const char *text)
{
	size_t len = strlen(text);

	if (append_key(l, key, len))
		append(l, text, len);
}

void log_line_number(struct log_line *l, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	append_plain(l, key, text);
}

void log_line_seconds(struct log_line *l, const char *key, uint64_t ms)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ms / 1000,
		 (unsigned int)(ms % 1000));
	append_plain(l, key, text);
}

void log_line_address(struct log_line *l, const char *key,
		      const struct address *a)
{
	char text[ADDRESS_TEXT];

	log_line_text(l, key,
		      span_of_text(address_format(a, text, sizeof(text))));
}

/* The room for this was kept by room(). */
void log_line_end(struct log_line *l)
{
	if (l->format == LOG_JSON)
		l->text[l->len++] = '}';
	l->text[l->len++] = '\n';
}
