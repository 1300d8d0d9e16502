// SPDX-License-Identifier: GPL-2.0-or-later
#include "pending.h"
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
	fputs(c->nr_reflector_ports ? "" : " off", out);
	config_end_line(out, FEATURE_REFLECTOR_PORTS);
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

/* A limit by its name, and what stands behind the rate and the burst. */
struct rate_line {
	enum config_feature feature;
	const char *name, *scope;
};

static void print_rate(FILE *out, const struct rate_line *l,
		       const struct config_rate *r)
{
	char text[CONFIG_VALUE_TEXT];

	fprintf(out, "limit %s %s", l->name,
		r->count ? config_format_rate(r, text) : "off");
	/* that of long-headers follows from its rate */
	if (r->count && l->feature != FEATURE_LONG_HEADERS)
		fprintf(out, " burst %u", r->burst);
	fputs(l->scope, out);
	config_end_line(out, l->feature);
}

static void print_tier(FILE *out, const struct rate_line *client,
		       const struct config_tier *t, const char *family)
{
	char scope[32];
	const struct rate_line line = { client->feature, client->name, scope };

	if (!t->prefix_len)
		return;
	snprintf(scope, sizeof(scope), " per %s %u", family, t->prefix_len);
	print_rate(out, &line, &t->rate);
}

static void print_new_connections(FILE *out, const struct config_limits *l)
{
	static const struct rate_line line = { FEATURE_NEW_CONNECTIONS,
					       "new-connections",
					       " per client" };

	print_rate(out, &line, &l->new_connections_second);
	/* `off` stands for both */
	if (l->new_connections_minute.count)
		print_rate(out, &line, &l->new_connections_minute);
}

static void print_packet_rates(FILE *out, const struct config_limits *l)
{
	static const struct rate_line syns = { FEATURE_SYNS, "syns",
					       " per client" };
	static const struct rate_line initials = { FEATURE_QUIC_INITIALS,
						   "quic-initials",
						   " per client" };
	static const struct rate_line headers = { FEATURE_LONG_HEADERS,
						  "long-headers",
						  " on each listener" };

	print_rate(out, &syns, &l->syns);
	print_tier(out, &syns, &l->syns_v4, "ipv4");
	print_tier(out, &syns, &l->syns_v6, "ipv6");
	print_rate(out, &initials, &l->quic_initials);
	print_tier(out, &initials, &l->quic_initials_v4, "ipv4");
	print_tier(out, &initials, &l->quic_initials_v6, "ipv6");
	print_rate(out, &headers, &l->long_headers);
}

static void print_client_connections(FILE *out, unsigned int nr)
{
	if (nr)
		fprintf(out, "limit connections %u per client", nr);
	else
		fputs("limit connections off per client", out);
	config_end_line(out, FEATURE_CONNECTIONS_PER_CLIENT);
}

static void print_client_prefix(FILE *out, const char *family, unsigned int len)
{
	fprintf(out, "client prefix %s %u", family, len);
	config_end_line(out, FEATURE_CLIENT_PREFIX);
}

void config_print_limits(const struct config *c, FILE *out)
{
	const struct config_limits *l = &c->limits;
	char text[CONFIG_VALUE_TEXT];

	fprintf(out, "limit connections %u\n", l->connections);
	print_client_connections(out, l->connections_per_client);
	print_new_connections(out, l);
	print_packet_rates(out, l);
	fprintf(out, "limit penalty %s",
		l->penalty_ms ? config_format_time(l->penalty_ms, text)
			      : "off");
	config_end_line(out, FEATURE_PENALTY);
	fprintf(out, "limit prove-yourself %s",
		l->prove_yourself_bytes
			? config_format_size(l->prove_yourself_bytes, text)
			: "off");
	config_end_line(out, FEATURE_PROVE_YOURSELF);
	print_client_prefix(out, "ipv4", c->client_prefix_v4);
	print_client_prefix(out, "ipv6", c->client_prefix_v6);
}
