/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the router would read in the connections of a capture. Memory is
 * bounded: of connections and of their bytes the least active make room.
 */
#ifndef HEADGATE_SNIFFER_H
#define HEADGATE_SNIFFER_H

#include "frame.h"
#include "tls.h"

struct sniffer;

struct sniffer_limits {
	size_t nr_connections; /* remembered at a time */
	size_t nr_bytes;       /* of streams that are not decided yet */
};

struct sniffer_report {
	struct address client, server;
	enum tls_result result; /* NEED_MORE: the capture has no more of it */
	const struct tls_hello *hello;
};

typedef void sniffer_report_fn(void *context, const struct sniffer_report *r);

/*
 * A connection is reported once, as soon as its answer is known or when it has
 * to make room. The client is who sent the SYN, and in the middle of a
 * connection who talks to the lower port. There the stream begins at the
 * lowest sequence number seen, and a refusal waits for a few segments more,
 * since an earlier one may be late. NULL: out of memory.
 */
struct sniffer *sniffer_new(const struct sniffer_limits *limits,
			    sniffer_report_fn *report, void *context);

/* 0 or -ENOMEM. */
int sniffer_add(struct sniffer *s, const struct capture_frame *frame);

/* Reports what is not decided: the capture has ended. */
void sniffer_finish(struct sniffer *s);
void sniffer_free(struct sniffer *s);

struct sniffer_counters {
	uint64_t nr_segments;
	uint64_t nr_other, nr_fragments, nr_damaged; /* as frame.h has them */
	uint64_t nr_not_kept; /* segments too far out of order */
	/* to make room: reported before their end; and forgotten after it */
	uint64_t nr_given_up, nr_forgotten;
};
const struct sniffer_counters *sniffer_counters(const struct sniffer *s);

#endif
