// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Log lines, and the promise that a reader that blocks costs lines, which are
 * counted, and nobody's time. stderr is a pipe here; cmocka writes to stdout.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "log.h"

static int reader = -1, saved_stderr = -1;

static int open_pipe(void **state)
{
	int fds[2];

	(void)state;
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	reader = fds[0];
	return 0;
}

static int close_pipe(void **state)
{
	(void)state;
	log_stop();
	log_set_format(LOG_LOGFMT);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(reader);
	return 0;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads what there is until the pipe has been empty for `idle_ms`. */
static char *read_all(unsigned int idle_ms)
{
	size_t size = 1 << 22, len = 0, idle = 0;
	char *text = malloc(size);

	fcntl(reader, F_SETFL, O_NONBLOCK);
	while (idle < idle_ms && len < size - 1) {
		ssize_t n = read(reader, text + len, size - 1 - len);

		if (n > 0) {
			len += (size_t)n;
			idle = 0;
			continue;
		}
		usleep(1000);
		idle++;
	}
	text[len] = '\0';
	return text;
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int nr = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		nr++;
	}
	return nr;
}

static const char *finish(struct log_line *l)
{
	log_line_end(l);
	l->text[l->len] = '\0';
	return l->text;
}

static void logfmt(void **state)
{
	struct address a;
	struct log_line l;
	const char *text;

	(void)state;
	assert_true(address_parse("[2001:db8::1]:443", &a));
	log_line_begin(&l, LOG_LOGFMT, LOG_WARNING, "connection");
	log_line_text(&l, "plain", span_of_text("a.b-c_d/1"));
	log_line_text(&l, "empty", span_of_text(""));
	log_line_text(&l, "spaced", span_of_text("a b"));
	log_line_text(&l, "quoted", span_of_text("say \"x\""));
	log_line_text(&l, "hostile", span_of("\x1b[2J\n\\=\0\xff", 9));
	log_line_number(&l, "n", UINT64_MAX);
	log_line_seconds(&l, "duration", 61007);
	log_line_address(&l, "client", &a);
	text = finish(&l);
	assert_int_equal(strncmp(text, "time=20", 7), 0);
	assert_int_equal(text[strlen("time=2025-01-01T00:00:00.000")], 'Z');
	assert_string_equal(
		strchr(text, ' '),
		" level=warning event=connection plain=a.b-c_d/1 empty=\"\" "
		"spaced=\"a b\" quoted=\"say \\\"x\\\"\" "
		"hostile=\"\\x1b[2J\\x0a\\x5c=\\x00\\xff\" "
		"n=18446744073709551615 duration=61.007 "
		"client=[2001:db8::1]:443\n");
}

static void json(void **state)
{
	struct log_line l;
	json_error_t error;
	json_t *j;

	(void)state;
	log_line_begin(&l, LOG_JSON, LOG_INFO, "connection");
	log_line_text(&l, "hostile", span_of("\x1b\"\\x\n\xc3", 6));
	log_line_number(&l, "n", 7);
	log_line_seconds(&l, "s", 1500);
	j = json_loads(finish(&l), 0, &error);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "hostile")),
			    "\\x1b\"\\x5cx\\x0a\\xc3");
	assert_int_equal(json_integer_value(json_object_get(j, "n")), 7);
	assert_true(json_real_value(json_object_get(j, "s")) == 1.5);
	assert_string_equal(json_string_value(json_object_get(j, "level")),
			    "info");
	json_decref(j);
}

/* Whatever is put in, at whatever length: one line, well formed, in bounds. */
static void long_values(void **state)
{
	static char value[2 * LOG_LINE_MAX];
	static const char bytes[] = { 'a', '"', '\\', '\n' };
	struct log_line l;
	size_t i, len;
	int format;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++) {
		memset(value, bytes[i], sizeof(value));
		for (len = 0; len < sizeof(value); len += 7) {
			for (format = LOG_LOGFMT; format <= LOG_JSON;
			     format++) {
				json_t *j;

				log_line_begin(&l, format, LOG_INFO, "e");
				log_line_text(&l, "v", span_of(value, len));
				log_line_text(&l, "w", span_of(value, len));
				log_line_number(&l, "n", INT64_MAX);
				log_line_end(&l);
				assert_true(l.len <= LOG_LINE_MAX);
				assert_ptr_equal(memchr(l.text, '\n', l.len),
						 &l.text[l.len - 1]);
				if (format == LOG_LOGFMT)
					continue;
				j = json_loadb(l.text, l.len, 0, NULL);
				assert_non_null(j);
				json_decref(j);
			}
		}
	}
}

static void say(void **state)
{
	char *text;

	(void)state;
	log_say(LOG_INFO, "before %d", 1);
	assert_int_equal(log_start(), 0);
	assert_int_equal(log_start(), 0);
	log_say(LOG_ERR, "during");
	log_set_format(LOG_JSON);
	log_say(LOG_DEBUG, "as json");
	log_stop();
	log_stop();
	log_set_format(LOG_LOGFMT);
	log_say(LOG_INFO, "after");
	text = read_all(20);
	assert_non_null(strstr(text, "level=info event=message "
				     "text=\"before 1\"\n"));
	assert_non_null(strstr(text, "level=error event=message text=during"));
	assert_non_null(strstr(text, "\"text\":\"as json\"}\n"));
	assert_non_null(strstr(text, "text=after\n"));
	assert_int_equal(count(text, "\n"), 4);
	free(text);
}

#define WRITERS 4
#define LINES	20000

static _Atomic unsigned int nr_refused;
static struct log_ring *writer_rings[WRITERS];

static void *write_lines(void *arg)
{
	struct log_ring *r = arg;
	struct log_line l;
	int i;

	for (i = 0; i < LINES; i++) {
		log_line_begin(&l, LOG_LOGFMT, LOG_INFO, "t");
		log_line_number(&l, "i", (uint64_t)i);
		log_line_end(&l);
		if (!log_ring_write(r, &l))
			atomic_fetch_add(&nr_refused, 1);
	}
	return NULL;
}

static void *read_for_a_while(void *arg)
{
	(void)arg;
	return read_all(300);
}

static unsigned int sum_lost(const char *text)
{
	unsigned int sum = 0;

	while ((text = strstr(text, "event=log_lost lines="))) {
		text += strlen("event=log_lost lines=");
		sum += (unsigned int)strtoul(text, NULL, 10);
	}
	return sum;
}

/* Many rings at once: each line whole, and written + lost = put in. */
static void many_writers(void **state)
{
	pthread_t writers[WRITERS], collector;
	unsigned int written;
	char *text, *line;
	int i;

	(void)state;
	assert_int_equal(log_start(), 0);
	pthread_create(&collector, NULL, read_for_a_while, NULL);
	for (i = 0; i < WRITERS; i++) {
		if (!writer_rings[i])
			writer_rings[i] = log_ring_new(1 << 16);
		assert_non_null(writer_rings[i]);
		pthread_create(&writers[i], NULL, write_lines, writer_rings[i]);
	}
	for (i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	log_stop();
	pthread_join(collector, (void **)&text);
	written = count(text, "event=t i=");
	assert_true(written > 0);
	assert_int_equal(written + nr_refused, WRITERS * LINES);
	assert_int_equal(sum_lost(text), nr_refused);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_int_equal(strncmp(line, "time=", 5), 0);
	free(text);
}

/* Nobody reads: writers go on, at memory's speed; then a line says it. */
static void blocked_reader(void **state)
{
	double begin, blocked_s;
	unsigned int written;
	char *text;
	int i;

	(void)state;
	assert_int_equal(log_start(), 0);
	begin = now_s();
	for (i = 0; i < LINES; i++)
		log_say(LOG_INFO, "line %d of many that nobody reads", i);
	blocked_s = now_s() - begin;
	assert_true(blocked_s < 1.0);

	text = read_all(1500); /* lost lines are told once a second */
	written = count(text, "of many that nobody reads");
	assert_true(written < LINES);
	assert_int_equal(written + sum_lost(text), LINES);
	/* perhaps one while the pipe still took lines, and one at the end */
	assert_in_range(count(text, "event=log_lost"), 1, 2);
	free(text);

	/* and it is as before */
	log_say(LOG_INFO, "alive");
	text = read_all(100);
	assert_int_equal(count(text, "text=alive"), 1);
	free(text);
}

static void fill_pipe(void)
{
	char junk[4096];
	int flags = fcntl(STDERR_FILENO, F_GETFL);

	memset(junk, '\n', sizeof(junk));
	fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
	while (write(STDERR_FILENO, junk, sizeof(junk)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, flags);
}

static void stop_while_blocked(void **state)
{
	double begin;
	char *text;

	(void)state;
	fill_pipe();
	assert_int_equal(log_start(), 0);
	log_say(LOG_INFO, "stuck");
	usleep(50000);
	begin = now_s();
	log_stop();
	assert_true(now_s() - begin > 0.3);
	assert_true(now_s() - begin < 1.0);
	/* full: log_say() itself must not block either */
	begin = now_s();
	log_say(LOG_INFO, "nowhere");
	assert_true(now_s() - begin < 0.1);

	/* what was under way is not forgotten */
	free(read_all(20));
	assert_int_equal(log_start(), 0);
	text = read_all(100);
	assert_int_equal(count(text, "text=stuck"), 1);
	free(text);
}

static void broken_pipe(void **state)
{
	int null;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(log_start(), 0);
	null = open("/dev/null", O_RDONLY);
	dup2(null, reader);
	close(null);
	log_say(LOG_INFO, "to nobody");
	usleep(50000);
	log_stop();
}

/* A child neither repeats the parent's lines nor needs its thread. */
static void after_fork(void **state)
{
	int status;
	pid_t pid;
	char *text;

	(void)state;
	fill_pipe();
	assert_int_equal(log_start(), 0);
	log_say(LOG_INFO, "the parent's");
	log_stop();
	pid = fork();
	if (pid == 0) {
		log_start();
		log_say(LOG_INFO, "the child's");
		usleep(200000);
		log_stop();
		_exit(0);
	}
	assert_int_equal(log_start(), 0);
	text = read_all(400);
	waitpid(pid, &status, 0);
	assert_int_equal(count(text, "the child's"), 1);
	assert_int_equal(count(text, "the parent's"), 1);
	free(text);
}

int main(void)
{
#define WITH_PIPE(f) cmocka_unit_test_setup_teardown(f, open_pipe, close_pipe)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logfmt),      cmocka_unit_test(json),
		cmocka_unit_test(long_values), WITH_PIPE(say),
		WITH_PIPE(many_writers),       WITH_PIPE(blocked_reader),
		WITH_PIPE(stop_while_blocked), WITH_PIPE(broken_pipe),
		WITH_PIPE(after_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
