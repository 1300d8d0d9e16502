// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config.h"
#include "pending.h"
#include "print.h"
#include "token.h"

/* Whether the lexer would read it as one word. */
static bool is_bare(const char *text)
{
	size_t i;

	if (!*text || *text == '#' || config_is_keyword(text))
		return false;
	for (i = 0; text[i]; i++)
		if (!isgraph((unsigned char)text[i]) ||
		    strchr(",\"\\", text[i]))
			return false;
	return true;
}

void config_print_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (*text < ' ' || *text > '~')
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

void config_print_word(FILE *out, const char *text)
{
	if (is_bare(text))
		fputs(text, out);
	else
		config_print_string(out, text);
}

static void print_interfaces(const struct config *c, FILE *out)
{
	unsigned int i;

	for (i = 0; i < c->nr_interfaces; i++) {
		const struct config_interface *f = &c->interfaces[i];

		fputs("interface ", out);
		config_print_word(out, f->name);
		fprintf(out, "%s%s", f->may_be_generic ? " generic" : "",
			f->is_dormant ? " dormant" : "");
		config_end_line(out, FEATURE_INTERFACE);
	}
}

static void print_transports(FILE *out, unsigned int transports)
{
	if (transports & TRANSPORT_TCP)
		fputs(" tcp", out);
	if (transports & TRANSPORT_QUIC)
		fputs(" quic", out);
}

static void print_listen(FILE *out, const char *kind,
			 const struct config_listen *l)
{
	char text[ADDRESS_TEXT];

	fprintf(out, "%s %s", kind,
		address_format(&l->address, text, sizeof(text)));
	print_transports(out, l->transports);
}

static void print_listens(const struct config *c, FILE *out)
{
	unsigned int i;

	for (i = 0; i < c->nr_listens; i++) {
		const struct config_listen *l = &c->listens[i];

		print_listen(out, "listen", l);
		if (l->has_target) {
			fputs(" to ", out);
			config_print_word(out, c->backends[l->backend].name);
		}
		if (l->transports == TRANSPORT_QUIC)
			config_end_line(out, FEATURE_LISTEN_QUIC);
		else
			fputc('\n', out);
	}
}

static void print_guards(const struct config *c, FILE *out)
{
	unsigned int i;

	for (i = 0; i < c->nr_guards; i++) {
		print_listen(out, "guard", &c->guards[i]);
		config_end_line(out, FEATURE_GUARD);
	}
}

static void print_server(FILE *out, const struct config_server *s)
{
	char text[ADDRESS_TEXT + 256];

	if (s->unix_path)
		snprintf(text, sizeof(text), "unix:%s", s->unix_path);
	else if (s->host)
		snprintf(text, sizeof(text), "%s:%u", s->host, s->address.port);
	else
		address_format(&s->address, text, sizeof(text));
	fputc(' ', out);
	config_print_word(out, text);
	fprintf(out, " weight %u%s", s->weight, s->is_backup ? " backup" : "");
}

static void print_proxy(FILE *out, const struct config_backend *b)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} tlvs[] = {
		{ PROXY_TLV_ALPN, "alpn" },
		{ PROXY_TLV_AUTHORITY, "authority" },
		{ PROXY_TLV_UNIQUE_ID, "unique-id" },
	};
	const char *separator = " tlv ";
	size_t i;

	if (!b->proxy)
		return;
	fprintf(out, " proxy v%u", b->proxy);
	for (i = 0; i < sizeof(tlvs) / sizeof(tlvs[0]); i++) {
		if (!(b->proxy_tlvs & tlvs[i].bit))
			continue;
		fprintf(out, "%s%s", separator, tlvs[i].name);
		separator = ", ";
	}
}

static void print_check(FILE *out, const struct config_check *c)
{
	char interval[CONFIG_VALUE_TEXT], timeout[CONFIG_VALUE_TEXT];

	if (c->is_on)
		fprintf(out, " check tcp every %s timeout %s rise %u fall %u",
			config_format_time(c->interval_ms, interval),
			config_format_time(c->timeout_ms, timeout), c->rise,
			c->fall);
}

static void print_backends(const struct config *c, FILE *out)
{
	static const char *const balances[] = {
		[BALANCE_ROUND_ROBIN] = "round-robin",
		[BALANCE_LEAST_CONN] = "least-conn",
		[BALANCE_HASH] = "hash",
	};
	static const char *const paths[] = {
		[PATH_AUTO] = "auto",
		[PATH_LOCAL] = "local",
		[PATH_NAT] = "nat",
		[PATH_RELAY] = "relay",
	};
	unsigned int i, j;

	for (i = 0; i < c->nr_backends; i++) {
		const struct config_backend *b = &c->backends[i];

		fputs("backend ", out);
		config_print_word(out, b->name);
		for (j = 0; j < b->nr_servers; j++) {
			if (j)
				fputc(',', out);
			print_server(out, &b->servers[j]);
		}
		print_proxy(out, b);
		fprintf(out, " balance %s", balances[b->balance]);
		print_check(out, &b->check);
		print_transports(out, b->transports);
		fprintf(out, " path %s\n", paths[b->path]);
	}
}

static void print_target(const struct config *c, FILE *out,
			 const struct config_target *t)
{
	if (t->kind == TARGET_BACKEND) {
		fputs(" to ", out);
		config_print_word(out, c->backends[t->backend].name);
	} else {
		fputs(t->kind == TARGET_REFUSE ? " refuse" : " drop", out);
	}
	fputc('\n', out);
}

static void print_routes(const struct config *c, FILE *out)
{
	unsigned int i, j;

	for (i = 0; i < c->nr_routes; i++) {
		const struct config_route *r = &c->routes[i];

		fputs("route ", out);
		for (j = 0; j < r->nr_patterns; j++) {
			fputs(j ? ", " : "", out);
			config_print_word(out, r->patterns[j]);
		}
		for (j = 0; j < r->nr_alpns; j++) {
			fputs(j ? ", " : " alpn ", out);
			config_print_string(out, r->alpns[j]);
		}
		if (r->transports != (TRANSPORT_TCP | TRANSPORT_QUIC))
			print_transports(out, r->transports);
		print_target(c, out, &r->target);
	}
	fputs("default", out);
	print_target(c, out, &c->default_target);
	fputs("default plain", out);
	print_target(c, out, &c->default_plain);
}

/* For the router the lines are many, and a comment is of no use. */
static void end_of_entry(FILE *out, enum config_feature feature, bool flat)
{
	if (flat)
		fputc('\n', out);
	else
		config_end_line(out, feature);
}

static void print_list(FILE *out, enum config_feature feature,
		       const struct config_list *l, bool flat)
{
	const char *kind = feature == FEATURE_ALLOW   ? "allow"
			   : feature == FEATURE_BLOCK ? "block"
						      : "trust proxy";
	char text[ADDRESS_TEXT];
	size_t i;

	for (i = 0; i < l->nr_entries; i++) {
		const struct config_prefix *p = &l->entries[i];

		if (!flat && p->is_from_file)
			continue;
		fprintf(out, "%s %s", kind,
			prefix_format(&p->prefix, text, sizeof(text)));
		end_of_entry(out, feature, flat);
	}
	for (i = 0; i < l->nr_files && !flat; i++) {
		fprintf(out, "%s file ", kind);
		config_print_string(out, l->files[i]);
		end_of_entry(out, feature, flat);
	}
}

int config_print(const struct config *c, FILE *out, bool flat)
{
	print_interfaces(c, out);
	print_listens(c, out);
	print_guards(c, out);
	print_backends(c, out);
	print_routes(c, out);
	config_print_settings(c, out);
	config_print_limits(c, out);
	print_list(out, FEATURE_ALLOW, &c->allow, flat);
	print_list(out, FEATURE_BLOCK, &c->block, flat);
	print_list(out, FEATURE_TRUST_PROXY, &c->trust_proxy, flat);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
