/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ClientHello of 517 bytes with the extensions of a browser's, RFC 8446
 * section 4.1.2: what a proxy has to read before it knows the name.
 */
#ifndef BENCH_HELLO_H
#define BENCH_HELLO_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "wire.h"

#define HELLO_SIZE 517

struct hello_writer {
	uint8_t *at;
};

static inline void put_u8(struct hello_writer *w, unsigned int v)
{
	*w->at++ = (uint8_t)v;
}

static inline void put_u16(struct hello_writer *w, size_t v)
{
	put_u8(w, (unsigned int)(v >> 8));
	put_u8(w, (unsigned int)v & 0xff);
}

static inline void put_bytes(struct hello_writer *w, const void *p, size_t n)
{
	memcpy(w->at, p, n);
	w->at += n;
}

static inline void put_extension(struct hello_writer *w, unsigned int type,
				 const void *body, size_t len)
{
	put_u16(w, type);
	put_u16(w, len);
	put_bytes(w, body, len);
}

static inline void put_server_name(struct hello_writer *w, const char *name)
{
	size_t len = strlen(name);

	put_u16(w, 0);
	put_u16(w, len + 5);
	put_u16(w, len + 3);
	put_u8(w, 0);
	put_u16(w, len);
	put_bytes(w, name, len);
}

static inline void put_extensions(struct hello_writer *w, const char *name)
{
	static const uint8_t groups[] = { 0, 6, 0, 0x1d, 0, 0x17, 0, 0x18 };
	static const uint8_t formats[] = { 1, 0 };
	static const uint8_t alpn[] = { 0,   12,  2,   'h', '2', 8,   'h',
					't', 't', 'p', '/', '1', '.', '1' };
	static const uint8_t signatures[] = { 0, 8, 4, 3, 8, 4, 4, 1, 5, 3 };
	static const uint8_t versions[] = { 4, 3, 4, 3, 3 };
	static const uint8_t psk_modes[] = { 1, 1 };
	uint8_t key_share[38] = { 0, 36, 0, 0x1d, 0, 32 };

	memcpy(key_share + 6, wire_pattern, 32);
	put_server_name(w, name);
	put_extension(w, 23, "", 0);
	put_extension(w, 0xff01, "", 1);
	put_extension(w, 10, groups, sizeof(groups));
	put_extension(w, 11, formats, sizeof(formats));
	put_extension(w, 35, "", 0);
	put_extension(w, 16, alpn, sizeof(alpn));
	put_extension(w, 13, signatures, sizeof(signatures));
	put_extension(w, 43, versions, sizeof(versions));
	put_extension(w, 45, psk_modes, sizeof(psk_modes));
	put_extension(w, 51, key_share, sizeof(key_share));
}

/* name: at most 200 bytes, so that the padding has room. */
static inline void hello_build(uint8_t out[HELLO_SIZE], const char *name)
{
	static const uint8_t suites[] = { 0x13, 0x01, 0x13, 0x02, 0x13,
					  0x03, 0xc0, 0x2b, 0xc0, 0x2f };
	struct hello_writer w = { out };
	uint8_t *extensions;

	memset(out, 0, HELLO_SIZE);
	put_bytes(&w, "\x16\x03\x01", 3);
	put_u16(&w, HELLO_SIZE - HELLO_RECORD);
	put_bytes(&w, "\x01\x00", 2);
	put_u16(&w, HELLO_SIZE - HELLO_RECORD - 4);
	put_bytes(&w, "\x03\x03", 2);
	put_bytes(&w, wire_pattern, 32);
	put_u8(&w, sizeof(struct wire_order));
	w.at += sizeof(struct wire_order);
	put_u16(&w, sizeof(suites));
	put_bytes(&w, suites, sizeof(suites));
	put_bytes(&w, "\x01\x00", 2);
	extensions = w.at;
	w.at += 2;
	put_extensions(&w, name);
	/* padding, RFC 7685 */
	put_u16(&w, 21);
	put_u16(&w, (size_t)(out + HELLO_SIZE - w.at) - 2);
	w.at = extensions;
	put_u16(&w, (size_t)(out + HELLO_SIZE - extensions) - 2);
}

static inline void hello_order(uint8_t hello[HELLO_SIZE],
			       const struct wire_order *order)
{
	memcpy(hello + HELLO_SESSION_ID, order, sizeof(*order));
}

#endif
