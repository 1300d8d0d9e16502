/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors and warnings, in the order of the file. Inside of config/ only. */
#ifndef HEADGATE_CONFIG_REPORT_H
#define HEADGATE_CONFIG_REPORT_H

#include "builder.h"

/* Where the reading stops. */
#define CONFIG_ERRORS_MAX 20
#define CONFIG_WARNINGS_MAX 100

/* The file as a whole is line 1, column 1. */
__attribute__((format(printf, 3, 4))) void
config_error(struct config_builder *b, const struct config_location *at,
	     const char *format, ...);
__attribute__((format(printf, 3, 4))) void
config_warn(struct config_builder *b, const struct config_location *at,
	    const char *format, ...);

static inline bool config_has_given_up(const struct config_builder *b)
{
	return b->nr_errors >= CONFIG_ERRORS_MAX || b->is_out_of_memory;
}

/* 'word', cut when long, odd bytes as \x1b; lives as long as the line. */
const char *config_quote(struct config_builder *b, const char *text);
const char *config_quote_bytes(struct config_builder *b, const char *text,
			       size_t len);

/* "file:line", for a message about another place. */
const char *config_place(struct config_builder *b,
			 const struct config_location *at);

/* Sorts what was reported and hands it on; `report` may be NULL. */
void config_report(struct config_builder *b, config_report_fn *report,
		   void *context);
void config_report_free(struct config_builder *b);

#endif
