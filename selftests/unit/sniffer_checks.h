/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sniffer that is fed with segments, and what it reports. */
#ifndef SNIFFER_CHECKS_H
#define SNIFFER_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "captures.h"
#include "reassembly.h"
#include "sniffer.h"

#define NR_REPORTS 64

static struct sniffer *sniffer;
static unsigned int nr_reports;
static struct report {
	struct sniffer_report r;
	char name[TLS_NAME_MAX + 1];
	enum reason reason;
	size_t alpn_len;
} reports[NR_REPORTS];

static struct hello hello;
static struct bytes wire;

static inline void record(void *context, const struct sniffer_report *r)
{
	struct report *to = &reports[nr_reports++ % NR_REPORTS];

	(void)context;
	to->r = *r;
	strcpy(to->name, r->hello->name);
	to->reason = r->hello->reason;
	to->alpn_len = r->hello->alpn.len;
}

static const struct sniffer_limits wide = { 1000, 1u << 20 };

static inline void start(const struct sniffer_limits *limits)
{
	sniffer_free(sniffer);
	nr_reports = 0;
	sniffer = sniffer_new(limits, record, NULL);
	assert_non_null(sniffer);
}

static inline int stop(void **state)
{
	(void)state;
	sniffer_free(sniffer);
	sniffer = NULL;
	return 0;
}

static inline void add(const struct tcp *t)
{
	static struct bytes packet;
	struct capture_frame frame = { .link_type = 101 };

	packet.len = 0;
	ipv4_packet(&packet, t);
	frame.bytes = bytes_span(&packet);
	assert_int_equal(sniffer_add(sniffer, &frame), 0);
}

/* From client 1, its port, to the server's port 443. */
static inline void send_from(unsigned int port, unsigned int flags,
			     uint32_t seq, struct span data)
{
	add(&(struct tcp){ .from = 1,
			   .from_port = port,
			   .to = 2,
			   .to_port = 443,
			   .seq = seq,
			   .flags = flags,
			   .data = data.p,
			   .len = data.len });
}

static inline void segment(unsigned int flags, uint32_t seq, struct span data)
{
	send_from(5000, flags, seq, data);
}

static inline void reply(unsigned int flags, uint32_t seq, uint32_t ack,
			 struct span data)
{
	add(&(struct tcp){ .from = 2,
			   .from_port = 443,
			   .to = 1,
			   .to_port = 5000,
			   .seq = seq,
			   .ack = ack,
			   .flags = flags,
			   .data = data.p,
			   .len = data.len });
}

static const struct span nothing;

static inline struct span part(size_t at, size_t len)
{
	return span_of(wire.data + at, len);
}

static inline void build(const char *name)
{
	hello_build(&hello, name);
	records_write(&wire, bytes_span(&hello.message), 16384);
}

static inline void check_report(unsigned int index, enum tls_result result,
				const char *name)
{
	char buf[ADDRESS_TEXT];

	assert_true(nr_reports > index);
	assert_int_equal(reports[index].r.result, result);
	assert_string_equal(reports[index].name, name);
	assert_string_equal(
		address_format_host(&reports[index].r.client, buf, sizeof(buf)),
		"192.0.2.1");
	assert_int_equal(reports[index].r.server.port, 443);
}

static inline void check_only_report(enum tls_result result, const char *name)
{
	sniffer_finish(sniffer);
	assert_int_equal(nr_reports, 1);
	check_report(0, result, name);
}

#endif
