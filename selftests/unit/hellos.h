/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ClientHellos built by code, sound ones and others, and the records that
 * carry them. For tests and benchmarks: a full buffer ends the program.
 */
#ifndef HELLOS_H
#define HELLOS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "span.h"

#define BYTES_MAX (256 * 1024)

struct bytes {
	size_t len;
	uint8_t data[BYTES_MAX];
};

static inline void bytes_add(struct bytes *b, const void *p, size_t len)
{
	if (len > sizeof(b->data) - b->len)
		abort();
	if (len)
		memcpy(b->data + b->len, p, len);
	b->len += len;
}

static inline void bytes_number(struct bytes *b, size_t v, size_t width)
{
	uint8_t big_endian[8];

	for (size_t i = 0; i < width; i++)
		big_endian[i] = (uint8_t)(v >> 8 * (width - 1 - i));
	bytes_add(b, big_endian, width);
}

/* A vector whose length is written when it is closed. */
static inline size_t bytes_open(struct bytes *b, size_t width)
{
	bytes_number(b, 0, width);
	return b->len;
}

static inline void bytes_close(struct bytes *b, size_t start, size_t width)
{
	size_t end = b->len, len = end - start;

	b->len = start - width;
	bytes_number(b, len, width);
	b->len = end;
}

static inline struct span bytes_span(const struct bytes *b)
{
	return span_of(b->data, b->len);
}

/* A message in the making: hello_begin(), extensions, hello_end(). */
struct hello {
	struct bytes message;
	size_t body_at, extensions_at;
};

static inline void hello_begin_without_extensions(struct hello *h)
{
	static const uint8_t suites[] = { 0x13, 0x01, 0x13, 0x02 };
	size_t at;

	h->message.len = 0;
	bytes_number(&h->message, 1, 1);
	h->body_at = bytes_open(&h->message, 3);
	bytes_number(&h->message, 0x0303, 2);
	for (size_t i = 0; i < 32; i++)
		bytes_number(&h->message, 0xa0 + i, 1);
	at = bytes_open(&h->message, 1);
	bytes_add(&h->message, "0123456789abcdef0123456789abcdef", 32);
	bytes_close(&h->message, at, 1);
	at = bytes_open(&h->message, 2);
	bytes_add(&h->message, suites, sizeof(suites));
	bytes_close(&h->message, at, 2);
	bytes_number(&h->message, 0x0100, 2);
	h->extensions_at = 0;
}

static inline void hello_begin(struct hello *h)
{
	hello_begin_without_extensions(h);
	h->extensions_at = bytes_open(&h->message, 2);
}

static inline void hello_end(struct hello *h)
{
	if (h->extensions_at)
		bytes_close(&h->message, h->extensions_at, 2);
	bytes_close(&h->message, h->body_at, 3);
}

static inline void hello_extension(struct hello *h, size_t type,
				   const void *data, size_t len)
{
	bytes_number(&h->message, type, 2);
	bytes_number(&h->message, len, 2);
	bytes_add(&h->message, data, len);
}

static inline void hello_server_name(struct hello *h, const void *name,
				     size_t len)
{
	bytes_number(&h->message, 0, 2);
	bytes_number(&h->message, len + 5, 2);
	bytes_number(&h->message, len + 3, 2);
	bytes_number(&h->message, 0, 1);
	bytes_number(&h->message, len, 2);
	bytes_add(&h->message, name, len);
}

/* `list`: ProtocolNames with their lengths, "\2h2\10http/1.1". */
static inline void hello_alpn(struct hello *h, const void *list, size_t len)
{
	bytes_number(&h->message, 16, 2);
	bytes_number(&h->message, len + 2, 2);
	bytes_number(&h->message, len, 2);
	bytes_add(&h->message, list, len);
}

/* An everyday hello; NULL: without a name. */
static inline void hello_build(struct hello *h, const char *name)
{
	static const uint8_t groups[] = { 0, 4, 0, 0x1d, 0, 0x17 };
	static const uint8_t versions[] = { 4, 3, 4, 3, 3 };
	uint8_t key_share[38] = { 0, 36, 0, 0x1d, 0, 32 };

	hello_begin(h);
	hello_extension(h, 10, groups, sizeof(groups));
	if (name)
		hello_server_name(h, name, strlen(name));
	hello_alpn(h, "\2h2\10http/1.1", 12);
	hello_extension(h, 43, versions, sizeof(versions));
	hello_extension(h, 51, key_share, sizeof(key_share));
	hello_end(h);
}

static inline void record_write(struct bytes *out, unsigned int type,
				struct span fragment)
{
	bytes_number(out, type, 1);
	bytes_number(out, 0x0301, 2);
	bytes_number(out, fragment.len, 2);
	bytes_add(out, fragment.p, fragment.len);
}

/* The message in records of `size` bytes at most. */
static inline void records_write(struct bytes *out, struct span message,
				 size_t size)
{
	struct span fragment;

	out->len = 0;
	while (message.len) {
		size_t len = message.len < size ? message.len : size;

		span_take(&message, len, &fragment);
		record_write(out, 22, fragment);
	}
}

#endif
