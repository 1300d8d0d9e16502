// SPDX-License-Identifier: GPL-2.0-or-later
#include "print.h"

static void print_timeout(FILE *out, const char *name, uint32_t ms)
{
	char text[CONFIG_VALUE_TEXT];

	fprintf(out, "timeout %s %s\n", name, config_format_time(ms, text));
}

static void print_relay(FILE *out, const struct config_relay *r)
{
	char size[CONFIG_VALUE_TEXT], time[CONFIG_VALUE_TEXT];

	if (r->may_splice)
		fprintf(out, "relay splice after %s or %s\n",
			config_format_size(r->splice_after_bytes, size),
			config_format_time(r->splice_after_ms, time));
	else
		fputs("relay splice off\n", out);
}

static void print_log(FILE *out, const struct config_log *l)
{
	fprintf(out, "log %s\n", l->format == LOG_JSON ? "json" : "logfmt");
	fprintf(out, "log connections %s\n", l->has_connections ? "on" : "off");
	if (l->refusals_per_sec)
		fprintf(out, "log refusals %u/s\n", l->refusals_per_sec);
	else
		fputs("log refusals off\n", out);
}

static void print_reflectors(const struct config *c, FILE *out)
{
	unsigned int i;

	fputs("reflector ports", out);
	for (i = 0; i < c->nr_reflector_ports; i++)
		fprintf(out, "%s %u", i ? "," : "", c->reflector_ports[i]);
	fputs(c->nr_reflector_ports ? "\n" : " off\n", out);
}

void config_print_settings(const struct config *c, FILE *out)
{
	print_timeout(out, "hello", c->timeouts.hello_ms);
	print_timeout(out, "connect", c->timeouts.connect_ms);
	print_timeout(out, "idle", c->timeouts.idle_ms);
	print_timeout(out, "drain", c->timeouts.drain_ms);
	print_relay(out, &c->relay);
	print_log(out, &c->log);
	if (c->workers)
		fprintf(out, "workers %u\n", c->workers);
	else
		fputs("workers auto\n", out);
	if (c->user) {
		fputs("user ", out);
		config_print_word(out, c->user);
		fputc('\n', out);
	}
	print_reflectors(c, out);
}

/* `scope` is what stands behind the rate, from " burst" or " per" on. */
static void print_rate(FILE *out, const char *name, const struct config_rate *r,
		       bool has_burst, const char *scope)
{
	char text[CONFIG_VALUE_TEXT];

	if (!r->count) {
		fprintf(out, "limit %s off%s\n", name, scope);
		return;
	}
	fprintf(out, "limit %s %s", name, config_format_rate(r, text));
	if (has_burst)
		fprintf(out, " burst %u", r->burst);
	fprintf(out, "%s\n", scope);
}

static void print_tier(FILE *out, const char *name, const struct config_tier *t,
		       const char *family)
{
	char scope[32];

	if (!t->prefix_len)
		return;
	snprintf(scope, sizeof(scope), " per %s %u", family, t->prefix_len);
	print_rate(out, name, &t->rate, true, scope);
}

static void print_new_connections(FILE *out, const struct config_limits *l)
{
	const char *name = "new-connections";

	print_rate(out, name, &l->new_connections_second, true, " per client");
	/* `off` stands for both */
	if (l->new_connections_minute.count)
		print_rate(out, name, &l->new_connections_minute, true,
			   " per client");
}

void config_print_limits(const struct config *c, FILE *out)
{
	const struct config_limits *l = &c->limits;
	char text[CONFIG_VALUE_TEXT];

	fprintf(out, "limit connections %u\n", l->connections);
	if (l->connections_per_client)
		fprintf(out, "limit connections %u per client\n",
			l->connections_per_client);
	else
		fputs("limit connections off per client\n", out);
	print_new_connections(out, l);
	print_rate(out, "syns", &l->syns, true, " per client");
	print_tier(out, "syns", &l->syns_v4, "ipv4");
	print_tier(out, "syns", &l->syns_v6, "ipv6");
	print_rate(out, "quic-initials", &l->quic_initials, true,
		   " per client");
	print_tier(out, "quic-initials", &l->quic_initials_v4, "ipv4");
	print_tier(out, "quic-initials", &l->quic_initials_v6, "ipv6");
	print_rate(out, "long-headers", &l->long_headers, false,
		   " on each listener");
	fprintf(out, "limit penalty %s\n",
		l->penalty_ms ? config_format_time(l->penalty_ms, text)
			      : "off");
	fprintf(out, "limit prove-yourself %s\n",
		l->prove_yourself_bytes
			? config_format_size(l->prove_yourself_bytes, text)
			: "off");
	fprintf(out, "client prefix ipv4 %u\nclient prefix ipv6 %u\n",
		c->client_prefix_v4, c->client_prefix_v6);
}
