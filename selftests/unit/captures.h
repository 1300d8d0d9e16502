/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture files built by code: TCP segments, in IP packets, in frames, in
 * pcap or pcapng.
 */
#ifndef CAPTURES_H
#define CAPTURES_H

#include <stdbool.h>

#include "hellos.h"

struct file_writer {
	struct bytes out;
	bool is_big_endian;
};

static inline void file_number(struct file_writer *w, size_t v, size_t width)
{
	for (size_t i = 0; i < width; i++) {
		size_t shift = w->is_big_endian ? width - 1 - i : i;

		bytes_number(&w->out, v >> 8 * shift & 0xff, 1);
	}
}

static inline void file_begin(struct file_writer *w, bool is_big_endian)
{
	w->out.len = 0;
	w->is_big_endian = is_big_endian;
}

static inline void pcap_header(struct file_writer *w, size_t magic,
			       size_t link_type)
{
	file_number(w, magic, 4);
	file_number(w, 2, 2);
	file_number(w, 4, 2);
	file_number(w, 0, 8);
	file_number(w, 65535, 4);
	file_number(w, link_type, 4);
}

static inline void pcap_frame(struct file_writer *w, struct span frame)
{
	file_number(w, 0, 8);
	file_number(w, frame.len, 4);
	file_number(w, frame.len, 4);
	bytes_add(&w->out, frame.p, frame.len);
}

/* Returns where the block begins. */
static inline size_t block_begin(struct file_writer *w, size_t type)
{
	size_t start = w->out.len;

	file_number(w, type, 4);
	file_number(w, 0, 4);
	return start;
}

static inline void block_end(struct file_writer *w, size_t start)
{
	size_t end, len;

	while (w->out.len % 4)
		bytes_number(&w->out, 0, 1);
	end = w->out.len + 4;
	len = end - start;
	w->out.len = start + 4;
	file_number(w, len, 4);
	w->out.len = end - 4;
	file_number(w, len, 4);
}

static inline void pcapng_section(struct file_writer *w)
{
	size_t at = block_begin(w, 0x0a0d0d0a);

	file_number(w, 0x1a2b3c4d, 4);
	file_number(w, 1, 2);
	file_number(w, 0, 2);
	file_number(w, (size_t)-1, 8);
	block_end(w, at);
}

static inline void pcapng_interface(struct file_writer *w, size_t link_type,
				    size_t snap_len)
{
	size_t at = block_begin(w, 1);

	file_number(w, link_type, 2);
	file_number(w, 0, 2);
	file_number(w, snap_len, 4);
	block_end(w, at);
}

/* In an enhanced packet block (6), or the older one (2). */
static inline void pcapng_frame(struct file_writer *w, size_t block,
				size_t interface, struct span frame)
{
	size_t at = block_begin(w, block);

	file_number(w, interface, block == 2 ? 2 : 4);
	if (block == 2)
		file_number(w, 0, 2);
	file_number(w, 0, 8);
	file_number(w, frame.len, 4);
	file_number(w, frame.len, 4);
	bytes_add(&w->out, frame.p, frame.len);
	block_end(w, at);
}

/* Its length in the file is the lesser of the wire's and the interface's. */
static inline void pcapng_simple_frame(struct file_writer *w, size_t wire_len,
				       struct span frame)
{
	size_t at = block_begin(w, 3);

	file_number(w, wire_len, 4);
	bytes_add(&w->out, frame.p, frame.len);
	block_end(w, at);
}

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

/* Host number 1 is 192.0.2.1, or 2001:db8::1. */
struct tcp {
	unsigned int from, from_port, to, to_port;
	uint32_t seq, ack;
	unsigned int flags;
	const void *data;
	size_t len;
	/* of the packet around it */
	size_t options_len;    /* of IPv4, a multiple of 4 */
	unsigned int fragment; /* of IPv4: flags and offset */
};

static inline void tcp_header(struct bytes *out, const struct tcp *t)
{
	bytes_number(out, t->from_port, 2);
	bytes_number(out, t->to_port, 2);
	bytes_number(out, t->seq, 4);
	bytes_number(out, t->ack, 4);
	bytes_number(out, 0x80, 1); /* 32 bytes: with options */
	bytes_number(out, t->flags, 1);
	bytes_number(out, 0xffff, 2);
	bytes_number(out, 0, 4);
	bytes_add(out, "\1\1\10\12\0\0\0\1\0\0\0\2", 12);
	bytes_add(out, t->data, t->len);
}

static inline void ipv4_packet(struct bytes *out, const struct tcp *t)
{
	bytes_number(out, 0x45 + t->options_len / 4, 1);
	bytes_number(out, 0, 1);
	bytes_number(out, 20 + t->options_len + 32 + t->len, 2);
	bytes_number(out, 0, 2);
	bytes_number(out, t->fragment, 2);
	bytes_number(out, 64, 1);
	bytes_number(out, 6, 1);
	bytes_number(out, 0, 2);
	bytes_number(out, 0xc0000200 + t->from, 4);
	bytes_number(out, 0xc0000200 + t->to, 4);
	for (size_t i = 0; i < t->options_len; i++)
		bytes_number(out, 1, 1);
	tcp_header(out, t);
}

/* `chain`: extension headers, whose first has this type. */
static inline void ipv6_packet(struct bytes *out, const struct tcp *t,
			       unsigned int first_type, struct span chain)
{
	bytes_number(out, 0x60000000, 4);
	bytes_number(out, chain.len + 32 + t->len, 2);
	bytes_number(out, chain.len ? first_type : 6, 1);
	bytes_number(out, 64, 1);
	bytes_number(out, 0x20010db8, 4);
	bytes_number(out, 0, 8);
	bytes_number(out, t->from, 4);
	bytes_number(out, 0x20010db8, 4);
	bytes_number(out, 0, 8);
	bytes_number(out, t->to, 4);
	bytes_add(out, chain.p, chain.len);
	tcp_header(out, t);
}

#endif
