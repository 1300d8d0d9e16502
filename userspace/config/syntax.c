// SPDX-License-Identifier: GPL-2.0-or-later
#include "syntax.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "suggest.h"

#include "grammar.h"

/* What a word would be, by what stands in front of it. */
static const struct {
	int previous;
	const char *noun;
} nouns[] = {
	{ T_LISTEN, "an address such as ':443'" },
	{ T_GUARD, "an address such as ':443'" },
	{ T_INTERFACE, "the name of an interface" },
	{ T_BACKEND, "a name" },
	{ T_TO, "the name of a backend" },
	{ T_USER, "the name of a user" },
	{ T_ALPN, "a protocol such as \"h2\"" },
	{ T_INCLUDE, "a file such as \"conf.d/*.conf\"" },
	{ T_FILE, "a file such as \"block.list\"" },
	{ T_AFTER, "a size such as 64KiB" },
	{ T_OR, "a time such as 5s" },
	{ T_HELLO, "a time such as 5s" },
	{ T_CONNECT, "a time such as 5s" },
	{ T_IDLE, "a time such as 10min" },
	{ T_DRAIN, "a time such as 30s" },
	{ T_EVERY, "a time such as 5s" },
	{ T_TIMEOUT, "a time such as 2s" },
	{ T_PENALTY, "a time such as 10min" },
	{ T_PROVE_YOURSELF, "a size such as 32MiB" },
	{ T_RISE, "a number" },
	{ T_FALL, "a number" },
	{ T_WEIGHT, "a number" },
	{ T_BURST, "a number" },
	{ T_CONNECTIONS, "a number" },
	{ T_WORKERS, "a number" },
	{ T_PORTS, "port numbers" },
	{ T_IPV4, "a prefix length such as 24" },
	{ T_IPV6, "a prefix length such as 48" },
	{ T_NEW_CONNECTIONS, "a rate such as 10/s" },
	{ T_QUIC_INITIALS, "a rate such as 50/s" },
	{ T_SYNS, "a rate such as 50/s" },
	{ T_LONG_HEADERS, "a rate such as 20000/s" },
	{ T_REFUSALS, "a rate such as 10/s" },
};

/* And where that does not say it, by the statement. */
static const char *noun_of_statement(int statement)
{
	switch (statement) {
	case T_ROUTE:
		return "a host name such as 'example.org' or '*.example.org'";
	case T_BACKEND:
		return "a server such as '192.0.2.1:443'";
	case T_ALLOW:
	case T_BLOCK:
	case T_TRUST:
		return "a prefix such as '192.0.2.0/24'";
	case T_REFLECTOR:
		return "a port number";
	default:
		return "a word";
	}
}

static const char *noun(const struct config_source *s)
{
	size_t i;

	for (i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++)
		if (nouns[i].previous == s->previous)
			return nouns[i].noun;
	return noun_of_statement(s->statement);
}

static bool is_punctuation(const char *name)
{
	return *name == '\'';
}

/* A word that can not begin a statement. */
static void report_statement(struct config_source *s,
			     const struct config_syntax_error *e,
			     const char *near)
{
	struct config_builder *b = s->builder;
	const char *word = config_quote_bytes(b, s->text, s->text_len);

	if (s->current != T_WORD)
		config_error(b, &e->at,
			     "unexpected %s; a line begins with a word such as "
			     "'listen', 'backend' or 'route'",
			     word);
	else if (near)
		config_error(b, &e->at,
			     "unknown statement %s; did you mean '%s'?", word,
			     near);
	else
		config_error(b, &e->at,
			     "unknown statement %s; a line begins with a word "
			     "such as 'listen', 'backend' or 'route'",
			     word);
}

static void write_choice(FILE *out, const char *name)
{
	if (is_punctuation(name) || strchr(name, ' '))
		fputs(name, out);
	else
		fprintf(out, "'%s'", name);
}

/* Of servers, it is the likely mistake. */
static bool is_comma_missing(const struct config_source *s,
			     const struct config_syntax_error *e)
{
	unsigned int i;

	if (s->statement != T_BACKEND || s->current != T_WORD ||
	    !memchr(s->text, ':', s->text_len))
		return false;
	for (i = 0; i < e->nr_expected; i++)
		if (is_punctuation(e->expected[i]))
			return true;
	return false;
}

/* "'a', 'b' or 'c'" */
static void write_expected(FILE *out, const struct config_source *s,
			   const struct config_syntax_error *e)
{
	unsigned int i, nr = e->nr_expected + e->wants_value;

	if (e->wants_value)
		fputs(noun(s), out);
	for (i = e->wants_value; i < nr; i++) {
		if (i)
			fputs(i + 1 == nr ? " or " : ", ", out);
		write_choice(out, e->expected[i - e->wants_value]);
	}
}

static void report_unexpected(struct config_source *s,
			      const struct config_syntax_error *e)
{
	struct config_builder *b = s->builder;
	char *expected = NULL;
	size_t size;
	FILE *out = open_memstream(&expected, &size);

	if (!out) {
		b->is_out_of_memory = true;
		return;
	}
	write_expected(out, s, e);
	fclose(out);
	if (s->current == T_NEWLINE)
		config_error(b, &e->at,
			     "the line ends too early; expected %s", expected);
	else
		config_error(b, &e->at, "unexpected %s; expected %s",
			     config_quote_bytes(b, s->text, s->text_len),
			     expected);
	free(expected);
}

static const char *find_near(struct config_source *s,
			     const struct config_syntax_error *e)
{
	struct config_suggestion near = { 0 };
	unsigned int i;

	near.word = config_arena_copy(s->builder->line, s->text, s->text_len);
	if (!near.word)
		return NULL;
	for (i = 0; i < e->nr_expected; i++)
		if (!is_punctuation(e->expected[i]))
			config_suggest(&near, e->expected[i]);
	return near.best;
}

void config_report_syntax(struct config_source *s,
			  const struct config_syntax_error *e)
{
	struct config_builder *b = s->builder;
	const char *near = NULL;

	if (s->current == T_WORD)
		near = find_near(s, e);
	if (!s->previous || s->previous == T_NEWLINE)
		report_statement(s, e, near);
	else if (is_comma_missing(s, e))
		config_error(b, &e->at,
			     "unexpected %s; write ',' between two servers",
			     config_quote_bytes(b, s->text, s->text_len));
	else if (near)
		config_error(b, &e->at, "unknown word %s; did you mean '%s'?",
			     config_quote_bytes(b, s->text, s->text_len), near);
	else
		report_unexpected(s, e);
}
