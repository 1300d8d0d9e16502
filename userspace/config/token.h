/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lexer does with what it found: places, keywords, strings. Inside
 * of config/ only.
 */
#ifndef HEADGATE_CONFIG_TOKEN_H
#define HEADGATE_CONFIG_TOKEN_H

#include "source.h"

/* Goes past `len` bytes of a line, and says where they began. */
struct config_location config_token_advance(struct config_source *s,
					    size_t len);

/* Each returns the kind of token, 0 for none, or YYerror when reported. */
int config_token_word(struct config_source *s, struct config_word *out,
		      const char *text, size_t len);
int config_token_string(struct config_source *s, struct config_word *out,
			const char *text, size_t len);
int config_token_comma(struct config_source *s, const char *text);
int config_token_newline(struct config_source *s);
int config_token_end(struct config_source *s);

/* A word that must be in quotes where a name is not the only thing. */
bool config_is_keyword(const char *text);

/* The line goes on in the next one. */
void config_token_continue(struct config_source *s);

/* Errors of the lexer, at `at`. */
int config_token_bad_byte(struct config_source *s,
			  const struct config_location *at, char byte);
int config_token_open_string(struct config_source *s,
			     const struct config_location *at);

#endif
