// SPDX-License-Identifier: GPL-2.0-or-later
#include "token.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#include "grammar.h"

static const struct keyword {
	const char *text;
	int kind;
} keywords[] = { /* in the order of strcmp() */
	{ "after", T_AFTER },
	{ "allow", T_ALLOW },
	{ "alpn", T_ALPN },
	{ "authority", T_AUTHORITY },
	{ "auto", T_AUTO },
	{ "backend", T_BACKEND },
	{ "backup", T_BACKUP },
	{ "balance", T_BALANCE },
	{ "block", T_BLOCK },
	{ "burst", T_BURST },
	{ "check", T_CHECK },
	{ "client", T_CLIENT },
	{ "connect", T_CONNECT },
	{ "connections", T_CONNECTIONS },
	{ "default", T_DEFAULT },
	{ "dormant", T_DORMANT },
	{ "drain", T_DRAIN },
	{ "drop", T_DROP },
	{ "each", T_EACH },
	{ "every", T_EVERY },
	{ "fall", T_FALL },
	{ "file", T_FILE },
	{ "generic", T_GENERIC },
	{ "guard", T_GUARD },
	{ "hash", T_HASH },
	{ "hello", T_HELLO },
	{ "idle", T_IDLE },
	{ "include", T_INCLUDE },
	{ "interface", T_INTERFACE },
	{ "ipv4", T_IPV4 },
	{ "ipv6", T_IPV6 },
	{ "json", T_JSON },
	{ "least-conn", T_LEAST_CONN },
	{ "limit", T_LIMIT },
	{ "listen", T_LISTEN },
	{ "listener", T_LISTENER },
	{ "local", T_LOCAL },
	{ "log", T_LOG },
	{ "logfmt", T_LOGFMT },
	{ "long-headers", T_LONG_HEADERS },
	{ "nat", T_NAT },
	{ "new-connections", T_NEW_CONNECTIONS },
	{ "off", T_OFF },
	{ "on", T_ON },
	{ "or", T_OR },
	{ "path", T_PATH },
	{ "penalty", T_PENALTY },
	{ "per", T_PER },
	{ "plain", T_PLAIN },
	{ "ports", T_PORTS },
	{ "prefix", T_PREFIX },
	{ "prove-yourself", T_PROVE_YOURSELF },
	{ "proxy", T_PROXY },
	{ "quic", T_QUIC },
	{ "quic-initials", T_QUIC_INITIALS },
	{ "reflector", T_REFLECTOR },
	{ "refusals", T_REFUSALS },
	{ "refuse", T_REFUSE },
	{ "relay", T_RELAY },
	{ "rise", T_RISE },
	{ "round-robin", T_ROUND_ROBIN },
	{ "route", T_ROUTE },
	{ "splice", T_SPLICE },
	{ "syns", T_SYNS },
	{ "tcp", T_TCP },
	{ "timeout", T_TIMEOUT },
	{ "tlv", T_TLV },
	{ "to", T_TO },
	{ "trust", T_TRUST },
	{ "unique-id", T_UNIQUE_ID },
	{ "user", T_USER },
	{ "v1", T_V1 },
	{ "v2", T_V2 },
	{ "weight", T_WEIGHT },
	{ "workers", T_WORKERS },
};

static int compare(const void *key, const void *element)
{
	const struct config_word *w = key;
	const struct keyword *k = element;

	return strcmp(w->text, k->text);
}

static int find_keyword(const struct config_word *w)
{
	const struct keyword *k =
		bsearch(w, keywords, sizeof(keywords) / sizeof(keywords[0]),
			sizeof(keywords[0]), compare);

	return k ? k->kind : T_WORD;
}

bool config_is_keyword(const char *text)
{
	struct config_word w = { .text = text };

	return find_keyword(&w) != T_WORD;
}

struct config_location config_token_advance(struct config_source *s, size_t len)
{
	struct config_location at = { s->name, s->line, s->column };

	s->column += (unsigned int)len;
	return at;
}

static bool is_at_begin(const struct config_source *s)
{
	return !s->current || s->current == T_NEWLINE;
}

static int note(struct config_source *s, int kind, const char *text, size_t len)
{
	bool is_name = s->may_be_name && kind == T_WORD;

	if (is_at_begin(s))
		s->statement = kind;
	s->previous = s->current;
	s->current = kind;
	s->is_continued = false;
	s->text = text;
	s->text_len = len;
	s->may_be_name = kind == T_BACKEND || kind == T_TO ||
			 kind == T_ROUTE || kind == T_USER ||
			 kind == T_INTERFACE || (kind == ',' && s->was_name);
	s->was_name = is_name;
	return kind;
}

static int fail(struct config_source *s)
{
	note(s, T_CONFIG_YYerror, "", 0);
	return T_CONFIG_YYerror;
}

static char *copy(struct config_source *s, const char *text, size_t len)
{
	char *p = config_arena_copy(s->builder->line, text, len);

	if (!p)
		s->builder->is_out_of_memory = true;
	return p;
}

/* What word processors and web pages put in place of ' ' and '"'. */
static const struct {
	const char bytes[4];
	const char *text;
} lookalikes[] = {
	{ "\xc2\xa0", "a no-break space; write a plain one" },
	{ "\xe2\x80\x98", "a typographic quote; write a plain '\"'" },
	{ "\xe2\x80\x99", "a typographic quote; write a plain '\"'" },
	{ "\xe2\x80\x9c", "a typographic quote; write a plain '\"'" },
	{ "\xe2\x80\x9d", "a typographic quote; write a plain '\"'" },
};

static bool has_lookalike(struct config_source *s, const struct config_word *w)
{
	struct config_location at = w->at;
	const char *found;
	size_t i;

	for (i = 0; i < sizeof(lookalikes) / sizeof(lookalikes[0]); i++) {
		found = strstr(w->text, lookalikes[i].bytes);
		if (!found)
			continue;
		at.column += (unsigned int)(found - w->text);
		config_error(s->builder, &at, "this is %s", lookalikes[i].text);
		return true;
	}
	return false;
}

int config_token_word(struct config_source *s, struct config_word *out,
		      const char *text, size_t len)
{
	int kind = T_WORD;

	out->text = copy(s, text, len);
	if (!out->text)
		return T_YYEOF;
	if (has_lookalike(s, out))
		return fail(s);
	/* `route to x` has lost its name; none is called so without quotes */
	if (!s->may_be_name ||
	    (s->current == T_ROUTE && !strcmp(out->text, "to")))
		kind = find_keyword(out);
	return note(s, kind, text, len);
}

static int hex_digit(char c)
{
	if (!isxdigit((unsigned char)c))
		return -1;
	return c <= '9' ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Behind a backslash; returns the bytes taken, or 0 for an unknown escape. */
static size_t take_escape(const char *p, const char *end, char *out)
{
	int high, low;

	switch (*p) {
	case '"':
	case '\\':
		*out = *p;
		return 1;
	case 'n':
		*out = '\n';
		return 1;
	case 't':
		*out = '\t';
		return 1;
	case 'x':
		if (end - p < 3)
			return 0;
		high = hex_digit(p[1]);
		low = hex_digit(p[2]);
		if (high < 0 || low < 0 || (!high && !low))
			return 0;
		*out = (char)(high << 4 | low);
		return 3;
	default:
		return 0;
	}
}

static int bad_escape(struct config_source *s, struct config_location at,
		      const char *p, const char *end)
{
	size_t left = (size_t)(end - p), len = *p == 'x' ? 3 : 1;

	config_error(s->builder, &at,
		     "unknown escape %s; a string knows \\\", \\\\, \\n, \\t "
		     "and \\x01 to \\xff",
		     config_quote_bytes(s->builder, p - 1,
					(len < left ? len : left) + 1));
	return fail(s);
}

int config_token_string(struct config_source *s, struct config_word *out,
			const char *text, size_t len)
{
	const char *p = text + 1, *end = text + len - 1;
	char *q = copy(s, text, len);
	size_t taken;

	out->text = q;
	if (!q)
		return T_YYEOF;
	while (p < end) {
		if (!*p) {
			struct config_location at = out->at;

			at.column += (unsigned int)(p - text);
			return config_token_bad_byte(s, &at, *p);
		}
		if (*p != '\\') {
			*q++ = *p++;
			continue;
		}
		taken = take_escape(++p, end, q);
		if (!taken) {
			struct config_location at = out->at;

			at.column += (unsigned int)(p - 1 - text);
			return bad_escape(s, at, p, end);
		}
		p += taken;
		q++;
	}
	*q = '\0';
	return note(s, T_STRING, text, len);
}

int config_token_comma(struct config_source *s, const char *text)
{
	return note(s, ',', text, 1);
}

void config_token_continue(struct config_source *s)
{
	s->line++;
	s->column = 1;
}

int config_token_newline(struct config_source *s)
{
	/* a comma goes on in the next line; a blank one ends it */
	bool goes_on = s->current == ',' && !s->is_continued;

	config_token_continue(s);
	if (!goes_on)
		return note(s, T_NEWLINE, "", 0);
	s->is_continued = true;
	s->may_be_name = false;
	return 0;
}

int config_token_end(struct config_source *s)
{
	return is_at_begin(s) ? T_YYEOF : note(s, T_NEWLINE, "", 0);
}

int config_token_bad_byte(struct config_source *s,
			  const struct config_location *at, char byte)
{
	if (byte == '\\')
		config_error(s->builder, at,
			     "a backslash stands at the end of a line, where "
			     "it continues it, or in a string");
	else if (!byte)
		config_error(s->builder, at,
			     "a NUL byte; is this a text file?");
	else
		config_error(s->builder, at, "a control character: %s",
			     config_quote_bytes(s->builder, &byte, 1));
	return fail(s);
}

int config_token_open_string(struct config_source *s,
			     const struct config_location *at)
{
	config_error(s->builder, at,
		     "this string is not closed; add '\"' at its end");
	return fail(s);
}
