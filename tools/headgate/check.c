// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "config/config.h"
#include "config/print.h"
#include "route.h"

#define DEFAULT_FILE "/etc/headgate/headgate.conf"
#define NAME_LEN_MAX 253
#define ALPN_LEN_MAX 255

struct options {
	const char *file;
	bool prints, is_json, is_quic;
	const char *name;    /* NULL: no --route */
	char normal[256];    /* of the name: lower case, no final dot */
	uint8_t alpns[4096]; /* a ProtocolNameList */
	size_t alpns_len;
};

static void usage(FILE *out)
{
	fprintf(out,
		"usage: headgate check [-c FILE] [--print] "
		"[--route NAME [--alpn A]... [--quic]] [--json]\n\n"
		"  -c, --config FILE  instead of " DEFAULT_FILE "\n"
		"      --print        the whole configuration, defaults too\n"
		"      --route NAME   which line wins for a name; '' is none\n"
		"      --alpn A       the client offers this; in its order\n"
		"      --quic         the client comes by QUIC\n"
		"  -j, --json         facts as one JSON object\n");
}

static int complain(const char *text, const char *what)
{
	fprintf(stderr, "headgate check: %s%s\n", text, what);
	return -1;
}

static int add_alpn(struct options *o, const char *alpn)
{
	size_t len = strlen(alpn);

	if (!len || len > ALPN_LEN_MAX)
		return complain("a protocol has 1 to 255 bytes", "");
	if (o->alpns_len + 1 + len > sizeof(o->alpns))
		return complain("too many protocols", "");
	o->alpns[o->alpns_len] = (uint8_t)len;
	memcpy(o->alpns + o->alpns_len + 1, alpn, len);
	o->alpns_len += 1 + len;
	return 0;
}

static int set_name(struct options *o, const char *name)
{
	size_t i, len = strlen(name);
	struct address ignored;

	if (len > 1 && name[len - 1] == '.')
		len--;
	if (len > NAME_LEN_MAX)
		return complain("a host name has at most 253 bytes", "");
	if (address_parse_host(name, &ignored))
		return complain("clients ask for names, never for addresses: ",
				name);
	for (i = 0; i < len; i++)
		o->normal[i] = (char)tolower((unsigned char)name[i]);
	o->name = name;
	return 0;
}

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "print", no_argument, NULL, 'p' },
	{ "route", required_argument, NULL, 'r' },
	{ "alpn", required_argument, NULL, 'a' },
	{ "quic", no_argument, NULL, 'q' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* -1: to go on; else the exit status. */
static int set_option(struct options *o, int opt)
{
	switch (opt) {
	case 'c':
		o->file = optarg;
		return -1;
	case 'p':
		o->prints = true;
		return -1;
	case 'r':
		return set_name(o, optarg) ? COMMAND_USAGE : -1;
	case 'a':
		return add_alpn(o, optarg) ? COMMAND_USAGE : -1;
	case 'q':
		o->is_quic = true;
		return -1;
	case 'j':
		o->is_json = true;
		return -1;
	case 'h':
		usage(stdout);
		return COMMAND_OK;
	default:
		usage(stderr);
		return COMMAND_USAGE;
	}
}

static int parse_options(struct options *o, int argc, char **argv)
{
	int opt, status = -1;

	while (status < 0 && (opt = getopt_long(argc, argv, "c:jh",
						long_options, NULL)) != -1)
		status = set_option(o, opt);
	if (status >= 0)
		return status;
	if (optind < argc)
		complain("unexpected argument: ", argv[optind]);
	else if (!o->name && (o->alpns_len || o->is_quic))
		complain("--alpn and --quic go with --route", "");
	else if (o->prints && (o->name || o->is_json))
		complain("--print goes with neither --route nor --json", "");
	else
		return -1;
	return COMMAND_USAGE;
}

/* The messages go to stderr as they are, and into the JSON. */
static void report(void *context, bool is_error, const char *line)
{
	json_t *messages = context;

	fprintf(stderr, "%s\n", line);
	json_array_append_new(messages,
			      json_pack("{s:s, s:s}", "severity",
					is_error ? "error" : "warning",
					"message", line));
}

static int print_json(json_t *facts)
{
	int err = !facts || json_dumpf(facts, stdout, JSON_COMPACT);

	putchar('\n');
	json_decref(facts);
	return err || fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

/* Which line wins, and what it says. */
struct answer {
	struct config_location at; /* line 0: the default that is not written */
	const char *pattern, *alpn, *transports;
	struct config_target target;
	const char *unable; /* a transport that the default's backend lacks */
};

static struct config_location locate(const struct route *r)
{
	unsigned int i;

	for (i = 0; i < r->line->nr_patterns; i++)
		if (r->line->patterns[i] == r->pattern)
			return r->line->pattern_at[i];
	return r->line->at;
}

/* A route has the transports of its backend; the default is for both. */
static struct answer find_default(const struct options *o,
				  const struct config *c)
{
	unsigned int wanted = o->is_quic ? TRANSPORT_QUIC : TRANSPORT_TCP;
	struct answer a = { .at = c->default_at, .target = c->default_target };

	if (!a.at.file)
		a.at.file = c->file_names[0];
	if (a.target.kind == TARGET_BACKEND &&
	    !(c->backends[a.target.backend].transports & wanted))
		a.unable = o->is_quic ? "QUIC" : "TCP";
	return a;
}

static int find(const struct options *o, const struct config *c,
		struct answer *a)
{
	struct route_table *table = route_table_new(c);
	const struct route *r;

	if (!table) {
		complain("out of memory", "");
		return -1;
	}
	r = route_find(table, span_of_text(o->normal),
		       span_of(o->alpns, o->alpns_len),
		       o->is_quic ? TRANSPORT_QUIC : TRANSPORT_TCP);
	if (r)
		*a = (struct answer){
			.at = locate(r),
			.pattern = r->pattern,
			.alpn = r->alpn,
			.transports = r->transports == TRANSPORT_TCP  ? "tcp"
				      : r->transports == TRANSPORT_QUIC ? "quic"
									: NULL,
			.target = r->target,
		};
	else
		*a = find_default(o, c);
	route_table_free(table);
	return 0;
}

static const char *target_name(enum config_target_kind kind)
{
	return kind == TARGET_BACKEND  ? "to"
	       : kind == TARGET_REFUSE ? "refuse"
				       : "drop";
}

static int answer_json(const struct answer *a, const char *backend)
{
	enum config_target_kind kind = a->unable ? TARGET_REFUSE
						 : a->target.kind;

	return print_json(json_pack(
		"{s:s, s:I, s:I, s:s?, s:s?, s:s?, s:s, s:s?}", "file",
		a->at.file, "line", (json_int_t)a->at.line, "column",
		(json_int_t)a->at.column, "pattern", a->pattern, "alpn",
		a->alpn, "transport", a->transports, "target",
		target_name(kind), "backend", a->unable ? NULL : backend));
}

static int answer_text(const struct answer *a, const char *backend)
{
	if (a->at.line)
		printf("%s:%u:%u: ", a->at.file, a->at.line, a->at.column);
	else
		printf("%s: (not written) ", a->at.file);
	if (a->pattern)
		printf("route %s", a->pattern);
	else
		printf("default");
	if (a->alpn) {
		printf(" alpn ");
		config_print_string(stdout, a->alpn);
	}
	if (a->transports)
		printf(" %s", a->transports);
	printf(" %s%s%s", target_name(a->target.kind), backend ? " " : "",
	       backend ? backend : "");
	if (a->unable)
		printf(" (refused: it cannot take %s)", a->unable);
	putchar('\n');
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static int answer(const struct options *o, const struct config *c)
{
	struct answer a;
	const char *backend = NULL;

	if (find(o, c, &a))
		return COMMAND_FAILED;
	if (a.target.kind == TARGET_BACKEND)
		backend = c->backends[a.target.backend].name;
	return o->is_json ? answer_json(&a, backend) : answer_text(&a, backend);
}

static int summarise(const struct options *o, const struct config *c,
		     json_t *messages)
{
	if (o->is_json)
		return print_json(json_pack(
			"{s:b, s:s, s:I, s:I, s:I, s:O}", "ok", c != NULL,
			"file", o->file, "listeners",
			(json_int_t)(c ? c->nr_listens : 0), "backends",
			(json_int_t)(c ? c->nr_backends : 0), "routes",
			(json_int_t)(c ? c->nr_routes : 0), "messages",
			messages));
	if (c)
		printf("%s: ok (%u listeners, %u backends, %u routes)\n",
		       o->file, c->nr_listens, c->nr_backends, c->nr_routes);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

int command_check(int argc, char **argv, const struct command_options *global)
{
	struct options o = { .file = DEFAULT_FILE };
	json_t *messages = json_array();
	struct config *c = NULL;
	int status = parse_options(&o, argc, argv);

	(void)global;
	if (status >= 0)
		goto out;
	c = config_load(o.file, report, messages);
	if (c && o.prints)
		status = config_print(c, stdout, false) ? COMMAND_FAILED
							: COMMAND_OK;
	else if (c && o.name)
		status = answer(&o, c);
	else
		status = summarise(&o, c, messages);
	if (!c)
		status = COMMAND_USAGE;
out:
	config_free(c);
	json_decref(messages);
	return status;
}
