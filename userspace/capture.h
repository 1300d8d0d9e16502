/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture files, pcap and pcapng, of either byte order: bytes to frames. It
 * reads a file that is still growing (a pipe) as well as a whole one.
 */
#ifndef HEADGATE_CAPTURE_H
#define HEADGATE_CAPTURE_H

#include "span.h"

/* A record or block that claims more than this is damage. */
#define CAPTURE_BLOCK_MAX (16u << 20)
/* Of one section of pcapng; frames of further ones are passed over. */
#define CAPTURE_INTERFACES_MAX 256

enum capture_format { CAPTURE_UNKNOWN, CAPTURE_PCAP, CAPTURE_PCAPNG };

struct capture_interface {
	uint16_t link_type;
	uint32_t snap_len; /* 0: no limit */
};

struct capture {
	enum capture_format format;
	bool is_big_endian;
	unsigned int nr_interfaces;
	struct capture_interface interfaces[CAPTURE_INTERFACES_MAX];
	uint64_t nr_frames; /* given out */
	uint64_t nr_cut;    /* of these, shorter than they were on the wire */
	uint64_t nr_unassigned; /* passed over: of an interface not described */
};

struct capture_frame {
	uint16_t link_type; /* tcpdump.org/linktypes.html */
	struct span bytes;
};

enum capture_result {
	CAPTURE_FRAME,	 /* `out` is filled in */
	CAPTURE_MORE,	 /* the next record is not there, or not whole */
	CAPTURE_INVALID, /* no capture, if `format` is unknown; else damaged */
};

void capture_init(struct capture *c);

/*
 * Takes the next frame from the front of `rest`, and whatever stands before
 * it. `rest` moves on over what was read whole; after MORE, call again with
 * more bytes from there, or take the file for cut off if there are none.
 */
enum capture_result capture_next(struct capture *c, struct span *rest,
				 struct capture_frame *out);

#endif
