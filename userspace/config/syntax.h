/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a syntax error says. Inside of config/ only. */
#ifndef HEADGATE_CONFIG_SYNTAX_H
#define HEADGATE_CONFIG_SYNTAX_H

#include "source.h"

#define CONFIG_EXPECTED_MAX 128

/* The token is the source's current one. */
struct config_syntax_error {
	struct config_location at;
	bool wants_value; /* a word or a string would be right, too */
	const char *expected[CONFIG_EXPECTED_MAX];
	unsigned int nr_expected;
};

void config_report_syntax(struct config_source *s,
			  const struct config_syntax_error *e);

#endif
