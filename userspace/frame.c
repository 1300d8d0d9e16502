// SPDX-License-Identifier: GPL-2.0-or-later
#include "frame.h"

enum {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_BSD = 12, /* three numbers for one thing */
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_LOOP = 108,
	LINK_LINUX_COOKED = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_LINUX_COOKED_2 = 276,

	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_PPPOE = 0x8864,
	PPP_IPV4 = 0x0021,
	PPP_IPV6 = 0x0057,
};

static bool is_vlan(uint16_t ethertype)
{
	return ethertype == 0x8100 || ethertype == 0x88a8 ||
	       ethertype == 0x9100;
}

/* Any number of tags, and then IP, or PPPoE with IP in it. */
static bool skip_tags(uint16_t type, struct span *s)
{
	while (is_vlan(type))
		if (!span_skip(s, 2) || !span_take_u16(s, &type))
			return false;
	if (type == ETHERTYPE_PPPOE)
		return span_skip(s, 6) && span_take_u16(s, &type) &&
		       (type == PPP_IPV4 || type == PPP_IPV6);
	return type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6;
}

/* false: no IP packet in it. */
static bool skip_link_header(uint16_t link_type, struct span *s)
{
	uint16_t type;

	switch (link_type) {
	case LINK_ETHERNET:
		return span_skip(s, 12) && span_take_u16(s, &type) &&
		       skip_tags(type, s);
	case LINK_LINUX_COOKED:
		return span_skip(s, 14) && span_take_u16(s, &type) &&
		       skip_tags(type, s);
	case LINK_LINUX_COOKED_2:
		return span_take_u16(s, &type) && span_skip(s, 18) &&
		       skip_tags(type, s);
	case LINK_NULL: /* the family, by another number on each system */
	case LINK_LOOP:
		return span_skip(s, 4);
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6:
		return true;
	default:
		return false;
	}
}

static enum frame_result parse_tcp(struct span s, struct segment *out)
{
	struct span header = s;
	uint8_t offset;

	if (!span_take_u16(&s, &out->source.port) ||
	    !span_take_u16(&s, &out->destination.port) ||
	    !span_take_u32(&s, &out->seq) || !span_take_u32(&s, &out->ack) ||
	    !span_take_u8(&s, &offset) || !span_take_u8(&s, &out->flags))
		return FRAME_DAMAGED;
	offset >>= 4;
	out->payload = header;
	if (offset < 5 || !span_skip(&out->payload, offset * 4u))
		return FRAME_DAMAGED;
	return FRAME_TCP;
}

/* Beyond `len` is the link's padding; 0 is a sender's offload (any length). */
static void trim(struct span *s, size_t len)
{
	if (len && s->len > len)
		s->len = len;
}

static enum frame_result parse_ipv4(struct span s, struct segment *out)
{
	uint16_t total, fragment;
	struct span header = s, at;
	size_t len;

	if (s.len < 20)
		return FRAME_DAMAGED;
	len = (s.p[0] & 0xfu) * 4;
	at = span_of(s.p + 2, 2);
	span_take_u16(&at, &total);
	at = span_of(s.p + 6, 2);
	span_take_u16(&at, &fragment);
	trim(&s, total);
	if (len < 20 || !span_skip(&s, len))
		return FRAME_DAMAGED;
	if (header.p[9] != IPPROTO_TCP)
		return FRAME_OTHER;
	if (fragment & 0x3fff) /* more, or not the first */
		return FRAME_FRAGMENT;
	out->source.family = out->destination.family = AF_INET;
	memcpy(out->source.bytes, header.p + 12, 4);
	memcpy(out->destination.bytes, header.p + 16, 4);
	return parse_tcp(s, out);
}

/* The length of an extension header at the front of `s`; 0: there is none. */
static size_t extension_len(uint8_t type, struct span s)
{
	switch (type) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
		return 8 + 8u * s.p[1];
	case IPPROTO_FRAGMENT:
		return 8;
	case IPPROTO_AH:
		return 8 + 4u * s.p[1];
	default:
		return 0;
	}
}

static bool is_fragment(struct span s)
{
	return s.p[2] || s.p[3] & 0xf9; /* offset, more */
}

static enum frame_result parse_ipv6(struct span s, struct segment *out)
{
	const uint8_t *header = s.p;
	uint16_t payload_len;
	uint8_t type;
	size_t len;

	if (s.len < 40)
		return FRAME_DAMAGED;
	span_skip(&s, 4);
	span_take_u16(&s, &payload_len);
	span_take_u8(&s, &type);
	span_skip(&s, 33);
	trim(&s, payload_len);
	while (s.len >= 8 && (len = extension_len(type, s))) {
		if (type == IPPROTO_FRAGMENT && is_fragment(s))
			return FRAME_FRAGMENT;
		type = s.p[0];
		if (!span_skip(&s, len))
			return FRAME_DAMAGED;
	}
	if (type != IPPROTO_TCP)
		return FRAME_OTHER;
	out->source.family = out->destination.family = AF_INET6;
	memcpy(out->source.bytes, header + 8, 16);
	memcpy(out->destination.bytes, header + 24, 16);
	return parse_tcp(s, out);
}

enum frame_result frame_parse(const struct capture_frame *frame,
			      struct segment *out)
{
	struct span s = frame->bytes;

	memset(out, 0, sizeof(*out));
	if (!skip_link_header(frame->link_type, &s))
		return FRAME_OTHER;
	if (!s.len)
		return FRAME_DAMAGED;
	switch (s.p[0] >> 4) {
	case 4:
		return parse_ipv4(s, out);
	case 6:
		return parse_ipv6(s, out);
	default:
		return FRAME_OTHER;
	}
}
