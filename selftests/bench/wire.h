/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What load and origin say to each other through the proxy. The client opens
 * with a true ClientHello whose legacy_session_id, 32 bytes that no proxy
 * looks at, carries an order. Everything behind it is checked byte for byte.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum wire_op {
	WIRE_CONN, /* an answer, and the origin closes */
	WIRE_REQ,  /* an answer, then a response to each request */
	WIRE_DOWN, /* a stream to the client, and the origin closes */
	WIRE_UP,   /* a stream to the origin, an answer, and it closes */
	WIRE_IDLE, /* WIRE_REQ for the origin; only load tells them apart */
};

static const char *const wire_ops[] = { "conn", "req", "down", "up", "idle" };

#define WIRE_MAGIC 0x6863656265746167ull

struct wire_order {
	uint64_t magic;
	uint64_t op;
	uint64_t size;	/* bytes of the stream */
	uint64_t nonce; /* one per connection: shows bytes of another one */
};

/* record 5, handshake 4, version 2, random 32, length of session ID 1 */
#define HELLO_RECORD	 5
#define HELLO_SESSION_ID (HELLO_RECORD + 4 + 2 + 32 + 1)
#define HELLO_ORDER_END	 (HELLO_SESSION_ID + sizeof(struct wire_order))

#define ANSWER_SIZE   64
#define REQUEST_SIZE  256
#define RESPONSE_SIZE 1024
#define CHUNK	      (256 * 1024)
#define STAMP_BLOCK   4096

static uint64_t wire_pattern[STAMP_BLOCK / 8];

static inline void wire_init(void)
{
	uint64_t x = WIRE_MAGIC;

	for (size_t i = 0; i < STAMP_BLOCK / 8; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		wire_pattern[i] = x ^ x >> 29;
	}
}

/* A message or a block: stamps, then the pattern up to its end. */
static inline bool wire_piece_ok(const void *stamps, size_t stamps_len,
				 size_t off, const uint8_t *buf, size_t len)
{
	size_t n = 0;

	if (off < stamps_len) {
		n = stamps_len - off < len ? stamps_len - off : len;
		if (memcmp((const uint8_t *)stamps + off, buf, n))
			return false;
		off += n;
	}
	return !memcmp((const uint8_t *)wire_pattern + off, buf + n, len - n);
}

static inline void wire_message(void *buf, size_t size, uint64_t nonce,
				uint64_t seq)
{
	uint64_t stamps[2] = { nonce, seq };

	memcpy(buf, wire_pattern, size);
	memcpy(buf, stamps, sizeof(stamps));
}

static inline bool wire_message_ok(const uint8_t *buf, size_t len, size_t off,
				   uint64_t nonce, uint64_t seq)
{
	uint64_t stamps[2] = { nonce, seq };

	return wire_piece_ok(stamps, sizeof(stamps), off, buf, len);
}

/*
 * A stream is blocks of the pattern, each with its number at its head, so a
 * lost, doubled or displaced byte shows; the sender stores one word per block
 * and the receiver runs one memcmp over it, which is next to nothing.
 */
static inline uint64_t stream_stamp(uint64_t nonce, uint64_t pos)
{
	return (pos / STAMP_BLOCK) ^ nonce << 40;
}

/* The bytes from pos on; buf holds CHUNK + STAMP_BLOCK bytes of pattern. */
static inline const uint8_t *stream_at(uint8_t *buf, uint64_t nonce,
				       uint64_t pos)
{
	uint64_t block = pos - pos % STAMP_BLOCK;

	for (size_t i = 0; i <= CHUNK; i += STAMP_BLOCK) {
		uint64_t stamp = stream_stamp(nonce, block + i);

		memcpy(buf + i, &stamp, sizeof(stamp));
	}
	return buf + pos % STAMP_BLOCK;
}

static inline uint8_t *stream_new(void)
{
	uint8_t *buf = malloc(CHUNK + STAMP_BLOCK);

	for (size_t i = 0; buf && i <= CHUNK; i += STAMP_BLOCK)
		memcpy(buf + i, wire_pattern, STAMP_BLOCK);
	return buf;
}

static inline bool stream_ok(const uint8_t *buf, size_t len, uint64_t nonce,
			     uint64_t pos)
{
	while (len) {
		uint64_t stamp = stream_stamp(nonce, pos);
		size_t off = pos % STAMP_BLOCK;
		size_t n = STAMP_BLOCK - off < len ? STAMP_BLOCK - off : len;

		if (!wire_piece_ok(&stamp, sizeof(stamp), off, buf, n))
			return false;
		buf += n;
		pos += n;
		len -= n;
	}
	return true;
}

#endif
