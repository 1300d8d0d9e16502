// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pcap: draft-ietf-opsawg-pcap; pcapng: draft-ietf-opsawg-pcapng. Times are
 * not read, so microseconds and nanoseconds are all the same here.
 */
#include "capture.h"

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_OLD_PACKET = 2,
	BLOCK_SIMPLE_PACKET = 3,
	BLOCK_ENHANCED_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a, /* reads the same in both orders */

	PACKET_HEADER_LEN = 16,
	BLOCK_HEADER_LEN = 8,
	BLOCK_MIN = 12,
};

/* What capture_next() never returns: read, and not a frame. */
enum { NOT_A_FRAME = CAPTURE_INVALID + 1 };

void capture_init(struct capture *c)
{
	memset(c, 0, sizeof(*c));
}

static bool take_u16(const struct capture *c, struct span *s, uint16_t *out)
{
	if (!span_take_u16(s, out))
		return false;
	if (!c->is_big_endian)
		*out = __builtin_bswap16(*out);
	return true;
}

static bool take_u32(const struct capture *c, struct span *s, uint32_t *out)
{
	if (!span_take_u32(s, out))
		return false;
	if (!c->is_big_endian)
		*out = __builtin_bswap32(*out);
	return true;
}

/* The first four bytes tell the format, and pcap's byte order. */
static int begin(struct capture *c, struct span *rest)
{
	static const uint32_t section = BLOCK_SECTION;
	static const uint32_t micro = 0xa1b2c3d4, nano = 0xa1b23c4d;
	struct capture_interface *only = &c->interfaces[0];
	struct span s = *rest;
	uint32_t magic, link_type;

	c->is_big_endian = true;
	if (!take_u32(c, &s, &magic))
		return CAPTURE_MORE;
	if (magic == section) {
		c->format = CAPTURE_PCAPNG;
		return NOT_A_FRAME;
	}
	c->is_big_endian = magic == micro || magic == nano;
	magic = c->is_big_endian ? magic : __builtin_bswap32(magic);
	if (magic != micro && magic != nano)
		return CAPTURE_INVALID;
	/* version, zone, accuracy of times */
	if (!span_skip(&s, 12) || !take_u32(c, &s, &only->snap_len) ||
	    !take_u32(c, &s, &link_type))
		return CAPTURE_MORE;
	/* above stand the length of the frames' check sequences, and flags */
	only->link_type = (uint16_t)link_type;
	c->nr_interfaces = 1;
	c->format = CAPTURE_PCAP;
	*rest = s;
	return NOT_A_FRAME;
}

/* `len` bytes of `s`, of a frame that had `wire_len`. */
static int give(struct capture *c, uint32_t interface, struct span s,
		uint32_t len, uint32_t wire_len, struct capture_frame *out)
{
	if (!span_take(&s, len, &out->bytes))
		return CAPTURE_INVALID;
	if (interface >= c->nr_interfaces) {
		c->nr_unassigned++;
		return NOT_A_FRAME;
	}
	out->link_type = c->interfaces[interface].link_type;
	c->nr_frames++;
	c->nr_cut += len < wire_len;
	return CAPTURE_FRAME;
}

static int take_packet(struct capture *c, struct span *rest,
		       struct capture_frame *out)
{
	uint32_t len, wire_len;
	struct span s = *rest;

	if (!span_skip(&s, 8) || !take_u32(c, &s, &len) ||
	    !take_u32(c, &s, &wire_len))
		return CAPTURE_MORE;
	if (len > CAPTURE_BLOCK_MAX)
		return CAPTURE_INVALID;
	if (s.len < len)
		return CAPTURE_MORE;
	span_skip(rest, PACKET_HEADER_LEN + len);
	return give(c, 0, s, len, wire_len, out);
}

/* A section may be of another byte order, and has interfaces of its own. */
static int begin_section(struct capture *c, struct span body)
{
	uint16_t major;

	c->nr_interfaces = 0;
	if (!span_skip(&body, 4) || !take_u16(c, &body, &major) || major != 1)
		return CAPTURE_INVALID;
	return NOT_A_FRAME;
}

static int add_interface(struct capture *c, struct span body)
{
	struct capture_interface i;
	uint16_t reserved;

	if (!take_u16(c, &body, &i.link_type) ||
	    !take_u16(c, &body, &reserved) || !take_u32(c, &body, &i.snap_len))
		return CAPTURE_INVALID;
	if (c->nr_interfaces < CAPTURE_INTERFACES_MAX)
		c->interfaces[c->nr_interfaces++] = i;
	return NOT_A_FRAME;
}

static int simple_packet(struct capture *c, struct span body,
			 struct capture_frame *out)
{
	uint32_t wire_len, len, snap_len = c->interfaces[0].snap_len;

	if (!take_u32(c, &body, &wire_len))
		return CAPTURE_INVALID;
	len = wire_len;
	if (c->nr_interfaces && snap_len && len > snap_len)
		len = snap_len;
	return give(c, 0, body, len, wire_len, out);
}

static int packet(struct capture *c, uint32_t type, struct span body,
		  struct capture_frame *out)
{
	uint32_t interface = 0, len, wire_len;
	uint16_t old_interface = 0, drops;

	if (type == BLOCK_OLD_PACKET) {
		if (!take_u16(c, &body, &old_interface) ||
		    !take_u16(c, &body, &drops))
			return CAPTURE_INVALID;
		interface = old_interface;
	} else if (!take_u32(c, &body, &interface)) {
		return CAPTURE_INVALID;
	}
	if (!span_skip(&body, 8) || !take_u32(c, &body, &len) ||
	    !take_u32(c, &body, &wire_len))
		return CAPTURE_INVALID;
	return give(c, interface, body, len, wire_len, out);
}

/* Only behind the length of a section's block stands its byte order. */
static bool learn_order(struct capture *c, struct span s)
{
	static const uint32_t order = 0x1a2b3c4d;
	uint32_t magic;

	span_skip(&s, BLOCK_HEADER_LEN);
	c->is_big_endian = true;
	take_u32(c, &s, &magic);
	c->is_big_endian = magic == order;
	return magic == order || __builtin_bswap32(magic) == order;
}

/* The whole block at the front of `rest`; its body lacks the second length. */
static int take_block(struct capture *c, struct span *rest, uint32_t *type,
		      struct span *body)
{
	struct span s = *rest, block;
	uint32_t len, len_again;

	if (s.len < BLOCK_MIN)
		return CAPTURE_MORE;
	take_u32(c, &s, type);
	if (*type == BLOCK_SECTION && !learn_order(c, *rest))
		return CAPTURE_INVALID;
	take_u32(c, &s, &len);
	if (len < BLOCK_MIN || len % 4 || len > CAPTURE_BLOCK_MAX)
		return CAPTURE_INVALID;
	if (!span_take(rest, len, &block))
		return CAPTURE_MORE;
	span_skip(&block, BLOCK_HEADER_LEN);
	span_take(&block, len - BLOCK_MIN, body);
	take_u32(c, &block, &len_again);
	return len_again == len ? NOT_A_FRAME : CAPTURE_INVALID;
}

static int next_block(struct capture *c, struct span *rest,
		      struct capture_frame *out)
{
	struct span body = span_of(NULL, 0);
	uint32_t type;
	int result = take_block(c, rest, &type, &body);

	if (result != NOT_A_FRAME)
		return result;
	switch (type) {
	case BLOCK_SECTION:
		return begin_section(c, body);
	case BLOCK_INTERFACE:
		return add_interface(c, body);
	case BLOCK_SIMPLE_PACKET:
		return simple_packet(c, body, out);
	case BLOCK_OLD_PACKET:
	case BLOCK_ENHANCED_PACKET:
		return packet(c, type, body, out);
	default:
		return NOT_A_FRAME;
	}
}

enum capture_result capture_next(struct capture *c, struct span *rest,
				 struct capture_frame *out)
{
	int result = NOT_A_FRAME;

	while (result == NOT_A_FRAME) {
		if (c->format == CAPTURE_UNKNOWN)
			result = begin(c, rest);
		else if (c->format == CAPTURE_PCAP)
			result = take_packet(c, rest, out);
		else
			result = next_block(c, rest, out);
	}
	return (enum capture_result)result;
}
