/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host names, and the patterns of routes. Inside of config/ only. */
#ifndef HEADGATE_CONFIG_HOSTNAME_H
#define HEADGATE_CONFIG_HOSTNAME_H

#include "builder.h"

/*
 * Lower case, no final dot; lives as long as the configuration. NULL: the
 * error is reported.
 */
char *config_read_hostname(struct config_builder *b,
			   const struct config_word *w);

/* The same for "a.b", "*.b" and "*". */
char *config_read_pattern(struct config_builder *b,
			  const struct config_word *w);

/* Of a backend: what logs, metrics and status can show as it is. */
bool config_check_name(struct config_builder *b, const struct config_word *w,
		       const char *what);

#endif
