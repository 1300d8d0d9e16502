/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captured frames, of the link types that carry IP, to TCP segments. Lengths
 * are checked, checksums are not: a sender's own capture has none yet.
 */
#ifndef HEADGATE_FRAME_H
#define HEADGATE_FRAME_H

#include "address.h"
#include "capture.h"

enum {
	SEGMENT_FIN = 0x01,
	SEGMENT_SYN = 0x02,
	SEGMENT_RST = 0x04,
	SEGMENT_ACK = 0x10,
};

struct segment {
	struct address source, destination;
	uint32_t seq, ack;
	uint8_t flags;
	struct span payload; /* what was captured of it */
};

enum frame_result {
	FRAME_TCP,
	FRAME_OTHER,	/* not TCP over IP, or a link type that is not known */
	FRAME_FRAGMENT, /* of an IP packet; not put together */
	FRAME_DAMAGED,	/* a header is cut, or lies */
};

enum frame_result frame_parse(const struct capture_frame *frame,
			      struct segment *out);

#endif
