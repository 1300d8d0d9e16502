/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and names for people, each of a width that is known. */
#ifndef HEADGATE_TEXT_H
#define HEADGATE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TEXT_COUNT 8  /* "999,999", "1.2M" */
#define TEXT_BYTES 10 /* "999.9 MiB" */
#define TEXT_TIME  32

const char *text_count(int64_t n, char out[TEXT_COUNT]);
const char *text_bytes(int64_t n, char out[TEXT_BYTES]);
/* "2d 3h", "5min 10s" */
const char *text_time(int64_t s, char out[TEXT_TIME]);

/*
 * `text` in `width` columns at most: what is too long loses its middle, and
 * what is not printable ASCII is '?'. `out` has room for width + 1 bytes.
 */
const char *text_cut(const char *text, size_t width, char *out);

#endif
