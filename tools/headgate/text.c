// SPDX-License-Identifier: GPL-2.0-or-later
#include "text.h"

#include <stdio.h>
#include <string.h>

/* A number in [0, 1000) with one decimal, as long as that says something. */
static void scaled(double value, const char *unit, char *out, size_t size)
{
	/* 999.96 would come out as 1000.0 */
	if (value > 999.9)
		value = 999.9;
	snprintf(out, size, "%.1f%s", value, unit);
}

const char *text_count(int64_t n, char out[TEXT_COUNT])
{
	static const char *const units[] = { "k", "M", "G", "T", "P", "E" };
	double value = (double)n / 1000;
	size_t unit = 0;

	if (n < 1000 && n > -1000) {
		snprintf(out, TEXT_COUNT, "%d", (int)n);
		return out;
	}
	if (n > 0 && n < 1000000) {
		snprintf(out, TEXT_COUNT, "%d,%03d", (int)(n / 1000 % 1000),
			 (int)(n % 1000));
		return out;
	}
	for (; value >= 1000 && unit < 5; unit++)
		value /= 1000;
	scaled(value, units[unit], out, TEXT_COUNT);
	return out;
}

const char *text_bytes(int64_t n, char out[TEXT_BYTES])
{
	static const char *const units[] = { " KiB", " MiB", " GiB",
					     " TiB", " PiB", " EiB" };
	double value = (double)n / 1024;
	size_t unit = 0;

	if (n < 1000) {
		snprintf(out, TEXT_BYTES, "%d B", (int)n);
		return out;
	}
	for (; value >= 1000 && unit < 5; unit++)
		value /= 1024;
	scaled(value, units[unit], out, TEXT_BYTES);
	return out;
}

const char *text_time(int64_t s, char out[TEXT_TIME])
{
	long long m = s / 60, h = m / 60, d = h / 24;

	if (d)
		snprintf(out, TEXT_TIME, "%lldd %lldh", d, h % 24);
	else if (h)
		snprintf(out, TEXT_TIME, "%lldh %lldmin", h, m % 60);
	else if (m)
		snprintf(out, TEXT_TIME, "%lldmin %llds", m, s % 60LL);
	else
		snprintf(out, TEXT_TIME, "%llds", (long long)s);
	return out;
}

const char *text_cut(const char *text, size_t width, char *out)
{
	size_t i, len = strlen(text), head = len, tail = 0;

	if (len > width) {
		/* the end of a path or a name tells more than its middle */
		head = (width - 3) / 2;
		tail = width - 3 - head;
	}
	memcpy(out, text, head);
	if (tail) {
		memcpy(out + head, "...", 3);
		memcpy(out + head + 3, text + len - tail, tail);
	}
	len = tail ? width : head;
	for (i = 0; i < len; i++)
		if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
	out[len] = '\0';
	return out;
}
