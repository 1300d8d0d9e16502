// SPDX-License-Identifier: GPL-2.0-or-later
/* headgate status: the daemon's JSON, or the same for people. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control_client.h"
#include "text.h"

#define PATIENCE_S 5 /* a daemon that takes longer is not well */

/* For people it stays within 80 columns, whatever names there are. */
#define COLUMNS	     80
#define LABEL	     14 /* of a line of facts */
#define VALUE	     (COLUMNS - LABEL)
#define BACKEND	     13 /* of the table */
#define SERVER	     21 /* "255.255.255.255:65535" */
#define LISTENER     24
#define LISTENER_MAX 46

/* On a terminal only. */
enum colour { PLAIN, BOLD, GREEN, YELLOW, RED };

static const char *paint(enum colour c)
{
	static const char *const codes[] = { "\033[0m", "\033[1m", "\033[32m",
					     "\033[33m", "\033[31m" };

	return isatty(STDOUT_FILENO) ? codes[c] : "";
}

static int64_t number(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "?";
}

static void label(const char *name)
{
	printf("%s%-*s%s", paint(BOLD), LABEL, name, paint(PLAIN));
}

static void print_head(const json_t *j)
{
	bool is_draining = !strcmp(text(j, "state"), "draining");
	char up[TEXT_TIME];

	label("headgated");
	text_time(number(j, "uptime_s"), up);
	if (is_draining)
		printf("%s, %sdraining%s, up for %s\n", text(j, "version"),
		       paint(YELLOW), paint(PLAIN), up);
	else
		printf("%s, %s for %s\n", text(j, "version"), text(j, "state"),
		       up);
}

static void print_router(const json_t *j)
{
	int64_t restarts = number(j, "router_restarts");

	label("router");
	printf("process %lld", (long long)number(j, "router_pid"));
	if (restarts == 1)
		printf(", %srestarted once%s", paint(YELLOW), paint(PLAIN));
	else if (restarts)
		printf(", %srestarted %lld times%s", paint(YELLOW),
		       (long long)restarts, paint(PLAIN));
	putchar('\n');
}

static void print_config(const json_t *j)
{
	int64_t routes = number(j, "routes"), workers = number(j, "workers");
	char path[VALUE + 1];

	label("configuration");
	puts(text_cut(text(j, "config_file"), VALUE, path));
	label("");
	printf("generation %lld, %lld route%s, %lld worker%s\n",
	       (long long)number(j, "generation"), (long long)routes,
	       routes == 1 ? "" : "s", (long long)workers,
	       workers == 1 ? "" : "s");
}

static void print_listeners(const json_t *j)
{
	const json_t *list = json_object_get(j, "listeners");
	char address[LISTENER_MAX + 1];
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		const json_t *l = json_array_get(list, i);

		label(i				   ? ""
		      : json_array_size(list) == 1 ? "listener"
						   : "listeners");
		printf("%-*s %-4s %s\n", LISTENER,
		       text_cut(text(l, "address"), LISTENER_MAX, address),
		       text(l, "transport"), text(l, "mode"));
	}
}

static void print_counters(const json_t *j)
{
	const json_t *c = json_object_get(j, "connections");
	const json_t *b = json_object_get(j, "bytes");
	const json_t *e = json_object_get(j, "engines");
	const json_t *l = json_object_get(j, "limits");
	char n[3][TEXT_COUNT], in[TEXT_BYTES], out[TEXT_BYTES];

	label("connections");
	printf("%s now (of %s), %s in all\n",
	       text_count(number(c, "now"), n[0]),
	       text_count(number(l, "connections"), n[1]),
	       text_count(number(c, "total"), n[2]));
	label("engines");
	printf("%s rw, %s splice, %s sockmap\n",
	       text_count(number(e, "rw"), n[0]),
	       text_count(number(e, "splice"), n[1]),
	       text_count(number(e, "sockmap"), n[2]));
	label("bytes");
	printf("%s in, %s out\n", text_bytes(number(b, "in"), in),
	       text_bytes(number(b, "out"), out));
}

static enum colour colour_of(const char *state)
{
	if (!strcmp(state, "up"))
		return GREEN;
	return strcmp(state, "down") ? YELLOW : RED;
}

/*
 * The first two columns: a name that does not fit has a line of its own, and
 * so has an address, and the columns behind them stay where they are.
 */
static void print_names(const char *backend, const char *address)
{
	char cut[COLUMNS + 1];

	if (strlen(backend) > BACKEND) {
		puts(text_cut(backend, COLUMNS, cut));
		backend = "";
	}
	printf("%-*s ", BACKEND, text_cut(backend, BACKEND, cut));
	if (strlen(address) > SERVER) {
		puts(text_cut(address, COLUMNS - BACKEND - 1, cut));
		printf("%*s", BACKEND + 1, "");
		address = "";
	}
	printf("%-*s ", SERVER, text_cut(address, SERVER, cut));
}

static void print_server(const char *backend, const json_t *s)
{
	const char *state = text(s, "state");
	char now[TEXT_COUNT], failed[TEXT_COUNT];
	char in[TEXT_BYTES], out[TEXT_BYTES];

	print_names(backend, text(s, "address"));
	printf("%s%-7s%s %7s %7s %9s %9s\n", paint(colour_of(state)), state,
	       paint(PLAIN), text_count(number(s, "connections"), now),
	       text_count(number(s, "failures"), failed),
	       text_bytes(number(s, "bytes_in"), in),
	       text_bytes(number(s, "bytes_out"), out));
}

static void print_backend(const json_t *b)
{
	const json_t *servers = json_object_get(b, "servers");
	const char *name = text(b, "name");
	size_t i;

	for (i = 0; i < json_array_size(servers); i++)
		print_server(i ? "" : name, json_array_get(servers, i));
	if (i)
		return;
	print_names(name, "");
	printf("%sno address is known yet%s\n", paint(YELLOW), paint(PLAIN));
}

static void print_backends(const json_t *j)
{
	const json_t *list = json_object_get(j, "backends");
	size_t i;

	if (!json_array_size(list))
		return;
	printf("\n%s%-*s %-*s %-7s %7s %7s %9s %9s%s\n", paint(BOLD), BACKEND,
	       "backend", SERVER, "server", "state", "now", "failed", "in",
	       "out", paint(PLAIN));
	for (i = 0; i < json_array_size(list); i++)
		print_backend(json_array_get(list, i));
}

static void print_refused(const json_t *j)
{
	json_t *refused = json_object_get(j, "refused");
	const char *reason;
	json_t *count;
	char n[TEXT_COUNT];
	bool has_any = false;

	json_object_foreach(refused, reason, count)
	{
		if (!json_integer_value(count))
			continue;
		if (!has_any)
			printf("\n%srefused%s\n", paint(BOLD), paint(PLAIN));
		has_any = true;
		printf("%-24s %7s\n", reason,
		       text_count(json_integer_value(count), n));
	}
}

static void print_for_people(const json_t *j)
{
	print_head(j);
	print_router(j);
	print_config(j);
	print_listeners(j);
	print_counters(j);
	print_backends(j);
	print_refused(j);
}

int command_status(int argc, char **argv, const struct command_options *o)
{
	const char *error;
	json_t *answer;
	bool is_json;
	int status = control_client_options(
		argc, argv,
		"usage: headgate status [--json]\n\n"
		"  -j, --json  the answer as one JSON object\n",
		&is_json);

	if (status >= 0)
		return status;
	status = control_client_ask(o->run_dir, "status", PATIENCE_S, &answer);
	if (status != COMMAND_OK)
		return status;
	error = json_string_value(json_object_get(answer, "error"));
	if (error) {
		fprintf(stderr, "headgate: %s\n", error);
		status = COMMAND_FAILED;
	} else if (is_json) {
		status = control_client_print(answer);
	} else {
		print_for_people(answer);
	}
	json_decref(answer);
	return status;
}
