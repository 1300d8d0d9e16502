// SPDX-License-Identifier: GPL-2.0-or-later
#include "value.h"

#include <inttypes.h>
#include <string.h>

#include "report.h"

#define RATE_MAX 10000000

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = {
	{ "h", 3600000 },
	{ "min", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
	{ NULL, 0 },
};

static const struct unit sizes[] = {
	{ "GiB", 1 << 30 },
	{ "MiB", 1 << 20 },
	{ "KiB", 1 << 10 },
	{ "B", 1 },
	{ NULL, 0 },
};

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Takes the digits; a number beyond 64 bits is the largest one. */
static const char *take_number(const char *text, uint64_t *out)
{
	uint64_t n = 0;

	for (; is_digit(*text); text++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, *text - '0', &n))
			n = UINT64_MAX;
	}
	*out = n;
	return text;
}

static const char *format_number(uint64_t n, char buf[CONFIG_VALUE_TEXT])
{
	snprintf(buf, CONFIG_VALUE_TEXT, "%" PRIu64, n);
	return buf;
}

typedef const char *format_fn(uint64_t n, char buf[CONFIG_VALUE_TEXT]);

static bool check_range(struct config_builder *b, const struct config_word *w,
			const struct config_range *range, uint64_t n,
			format_fn *format)
{
	char min[CONFIG_VALUE_TEXT], max[CONFIG_VALUE_TEXT];

	if (n >= range->min && n <= range->max)
		return true;
	config_error(b, &w->at, "%s cannot be %s; it takes %s to %s",
		     range->what, config_quote(b, w->text),
		     format(range->min, min), format(range->max, max));
	return false;
}

bool config_read_number(struct config_builder *b, const struct config_word *w,
			const struct config_range *range, uint32_t *out)
{
	uint64_t n;
	const char *rest = take_number(w->text, &n);

	if (rest == w->text || *rest) {
		config_error(b, &w->at,
			     "%s cannot be %s; it takes a whole number",
			     range->what, config_quote(b, w->text));
		return false;
	}
	if (!check_range(b, w, range, n, format_number))
		return false;
	*out = (uint32_t)n;
	return true;
}

/* `kind` and `names` are for the message: "a time", "ms, s, min or h". */
static bool read_with_unit(struct config_builder *b,
			   const struct config_word *w,
			   const struct unit *units, const char *kind,
			   const char *names, uint64_t *out)
{
	const char *rest = take_number(w->text, out);
	const struct unit *unit = find_unit(units, rest);

	if (rest == w->text)
		config_error(b, &w->at,
			     "%s is not a %s; write a whole number and one of "
			     "%s",
			     config_quote(b, w->text), kind, names);
	else if (!*rest)
		config_error(b, &w->at, "the %s %s has no unit; add %s", kind,
			     config_quote(b, w->text), names);
	else if (*rest == '.' || *rest == ',')
		config_error(b, &w->at,
			     "the %s %s is not whole; use a smaller unit (%s)",
			     kind, config_quote(b, w->text), names);
	else if (!unit)
		config_error(b, &w->at, "unknown unit %s in %s; a %s takes %s",
			     config_quote(b, rest), config_quote(b, w->text),
			     kind, names);
	else if (__builtin_mul_overflow(*out, unit->factor, out))
		*out = UINT64_MAX;
	return rest != w->text && unit;
}

bool config_read_time(struct config_builder *b, const struct config_word *w,
		      const struct config_range *range_ms, uint32_t *out)
{
	uint64_t ms;

	if (!read_with_unit(b, w, times, "time", "ms, s, min or h", &ms) ||
	    !check_range(b, w, range_ms, ms, config_format_time))
		return false;
	*out = (uint32_t)ms;
	return true;
}

bool config_read_size(struct config_builder *b, const struct config_word *w,
		      const struct config_range *range, uint64_t *out)
{
	uint64_t bytes;

	if (!read_with_unit(b, w, sizes, "size", "B, KiB, MiB or GiB",
			    &bytes) ||
	    !check_range(b, w, range, bytes, config_format_size))
		return false;
	*out = bytes;
	return true;
}

static uint32_t find_period(const char *text)
{
	const struct unit *unit;

	if (*text != '/')
		return 0;
	unit = find_unit(times, text + 1);
	return unit && unit->factor > 1 ? (uint32_t)unit->factor : 0;
}

bool config_read_rate(struct config_builder *b, const struct config_word *w,
		      struct config_rate *out)
{
	static const struct config_range range = { "a rate", 1, RATE_MAX };
	uint64_t n;
	const char *rest = take_number(w->text, &n);
	uint32_t period = find_period(rest);

	if (rest == w->text || !period) {
		config_error(b, &w->at,
			     "%s is not a rate; write a whole number and a "
			     "unit, such as 10/s or 300/min",
			     config_quote(b, w->text));
		return false;
	}
	if (!n) {
		config_error(b, &w->at,
			     "a rate cannot be 0; `off` turns the limit off");
		return false;
	}
	if (!check_range(b, w, &range, n, format_number))
		return false;
	*out = (struct config_rate){
		.is_set = true,
		.count = (uint32_t)n,
		.period_ms = period,
		.burst = (uint32_t)n,
	};
	return true;
}

static const char *format_with_unit(uint64_t n, const struct unit *unit,
				    char buf[CONFIG_VALUE_TEXT])
{
	while (unit->factor > 1 && (!n || n % unit->factor))
		unit++;
	snprintf(buf, CONFIG_VALUE_TEXT, "%" PRIu64 "%s", n / unit->factor,
		 unit->name);
	return buf;
}

const char *config_format_time(uint64_t ms, char buf[CONFIG_VALUE_TEXT])
{
	return format_with_unit(ms, times, buf);
}

const char *config_format_size(uint64_t bytes, char buf[CONFIG_VALUE_TEXT])
{
	return format_with_unit(bytes, sizes, buf);
}

const char *config_format_rate(const struct config_rate *r,
			       char buf[CONFIG_VALUE_TEXT])
{
	const struct unit *unit = times;

	while (unit->factor != r->period_ms)
		unit++;
	snprintf(buf, CONFIG_VALUE_TEXT, "%u/%s", r->count, unit->name);
	return buf;
}
