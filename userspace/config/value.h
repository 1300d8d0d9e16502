/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers, times, sizes and rates: from words and back. Inside of config/
 * only. The readers report what is wrong and return false.
 */
#ifndef HEADGATE_CONFIG_VALUE_H
#define HEADGATE_CONFIG_VALUE_H

#include "builder.h"

#define CONFIG_VALUE_TEXT 32

/* What a value is called in messages, and its range, both ends included. */
struct config_range {
	const char *what;
	uint64_t min, max;
};

bool config_read_number(struct config_builder *b, const struct config_word *w,
			const struct config_range *range, uint32_t *out);
bool config_read_time(struct config_builder *b, const struct config_word *w,
		      const struct config_range *range_ms, uint32_t *out);
bool config_read_size(struct config_builder *b, const struct config_word *w,
		      const struct config_range *range, uint64_t *out);
/* The burst becomes the count. */
bool config_read_rate(struct config_builder *b, const struct config_word *w,
		      struct config_rate *out);

/* In the largest unit that divides it; each returns `buf`. */
const char *config_format_time(uint64_t ms, char buf[CONFIG_VALUE_TEXT]);
const char *config_format_size(uint64_t bytes, char buf[CONFIG_VALUE_TEXT]);
const char *config_format_rate(const struct config_rate *r,
			       char buf[CONFIG_VALUE_TEXT]);

#endif
