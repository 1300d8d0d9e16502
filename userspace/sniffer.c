// SPDX-License-Identifier: GPL-2.0-or-later
#include "sniffer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "reassembly.h"

/* In the middle of a connection, so many segments may still be late. */
#define NR_LATE_SEGMENTS 8

struct connection {
	TAILQ_ENTRY(connection) by_use;
	struct connection *next; /* in its bucket */
	struct address client, server;
	struct reassembly stream;
	uint32_t first_seq; /* of the client's SYN, or what it must have been */
	bool has_syn, is_decided;
	unsigned int nr_segments; /* of the client, with data */
	size_t need;		  /* as the parser said */
};

TAILQ_HEAD(connection_list, connection);

struct sniffer {
	struct sniffer_limits limits;
	sniffer_report_fn *report;
	void *context;
	struct sniffer_counters counters;
	struct connection_list pending, decided; /* least active first */
	size_t nr_connections, nr_bytes;
	uint64_t key[2];
	struct tls_scratch scratch;
	size_t nr_buckets; /* a power of two */
	struct connection *buckets[];
};

struct sniffer *sniffer_new(const struct sniffer_limits *limits,
			    sniffer_report_fn *report, void *context)
{
	struct sniffer *s;
	size_t nr = 16;

	while (nr < limits->nr_connections)
		nr *= 2;
	s = calloc(1, sizeof(*s) + nr * sizeof(s->buckets[0]));
	if (!s)
		return NULL;
	s->limits = *limits;
	if (!s->limits.nr_connections) /* the one at hand must have a place */
		s->limits.nr_connections = 1;
	s->report = report;
	s->context = context;
	s->nr_buckets = nr;
	TAILQ_INIT(&s->pending);
	TAILQ_INIT(&s->decided);
	/* a capture of an attack is an attacker's choice of addresses */
	if (getrandom(s->key, sizeof(s->key), 0) != sizeof(s->key)) {
		free(s);
		return NULL;
	}
	return s;
}

static uint64_t hash_end(const struct sniffer *s, const struct address *a)
{
	uint64_t words[2], h = s->key[0] ^ a->port;

	memcpy(words, a->bytes, sizeof(words));
	for (size_t i = 0; i < 3; i++) {
		h = (h ^ (i < 2 ? words[i] : a->family)) * (s->key[1] | 1);
		h ^= h >> 29;
	}
	return h;
}

/* The same for both directions. */
static struct connection **bucket(struct sniffer *s, const struct address *a,
				  const struct address *b)
{
	uint64_t h = hash_end(s, a) + hash_end(s, b);

	return &s->buckets[(h ^ h >> 32) & (s->nr_buckets - 1)];
}

static struct connection *find(struct sniffer *s, const struct segment *seg)
{
	const struct address *a = &seg->source, *b = &seg->destination;
	struct connection *c = *bucket(s, a, b);

	while (c &&
	       !(address_equal(&c->client, a) &&
		 address_equal(&c->server, b)) &&
	       !(address_equal(&c->client, b) && address_equal(&c->server, a)))
		c = c->next;
	return c;
}

static void forget_stream(struct sniffer *s, struct connection *c)
{
	s->nr_bytes -= reassembly_memory(&c->stream);
	reassembly_fini(&c->stream);
}

/* With its answer the connection gives its bytes back. */
static void decide(struct sniffer *s, struct connection *c,
		   enum tls_result result, const struct tls_hello *hello)
{
	const struct sniffer_report report = {
		.client = c->client,
		.server = c->server,
		.result = result,
		.hello = hello,
	};

	s->report(s->context, &report);
	if (!c->has_syn)
		c->first_seq = c->stream.base - 1;
	forget_stream(s, c);
	c->is_decided = true;
	TAILQ_REMOVE(&s->pending, c, by_use);
	TAILQ_INSERT_TAIL(&s->decided, c, by_use);
}

static enum tls_result parse(struct sniffer *s, struct connection *c,
			     struct tls_hello *hello)
{
	return tls_parse_records(span_of(c->stream.bytes, c->stream.len),
				 &s->scratch, hello);
}

/* What is there is all that there will be. */
static void give_up(struct sniffer *s, struct connection *c)
{
	struct tls_hello hello;
	enum tls_result result = parse(s, c, &hello);

	decide(s, c, result, &hello);
}

static void remove_connection(struct sniffer *s, struct connection *c)
{
	struct connection **at = bucket(s, &c->client, &c->server);

	if (!c->is_decided)
		give_up(s, c);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	TAILQ_REMOVE(&s->decided, c, by_use);
	s->nr_connections--;
	free(c);
}

static void make_room(struct sniffer *s, const struct connection *keep)
{
	struct connection *c;

	while (s->nr_connections > s->limits.nr_connections) {
		c = TAILQ_FIRST(&s->decided);
		if (c) {
			s->counters.nr_forgotten++;
		} else {
			s->counters.nr_given_up++;
			c = TAILQ_FIRST(&s->pending);
		}
		remove_connection(s, c);
	}
	while (s->nr_bytes > s->limits.nr_bytes) {
		c = TAILQ_FIRST(&s->pending);
		if (c == keep)
			break;
		s->counters.nr_given_up++;
		give_up(s, c);
	}
}

/* Who opens it; without a SYN, who talks to the lower port. */
static bool is_from_client(const struct segment *seg)
{
	if (seg->flags & SEGMENT_SYN)
		return !(seg->flags & SEGMENT_ACK);
	return seg->source.port >= seg->destination.port;
}

/* NULL with *err 0: this segment begins nothing that could be reported. */
static struct connection *begin(struct sniffer *s, const struct segment *seg,
				int *err)
{
	bool is_client = is_from_client(seg);
	struct connection *c, **at;

	*err = 0;
	if (seg->flags & SEGMENT_RST)
		return NULL;
	if (!(seg->flags & SEGMENT_SYN) && (!is_client || !seg->payload.len))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c) {
		*err = -ENOMEM;
		return NULL;
	}
	c->client = is_client ? seg->source : seg->destination;
	c->server = is_client ? seg->destination : seg->source;
	at = bucket(s, &c->client, &c->server);
	c->next = *at;
	*at = c;
	TAILQ_INSERT_TAIL(&s->pending, c, by_use);
	s->nr_connections++;
	make_room(s, c);
	return c;
}

/* The same ports again: a SYN that does not belong to what is there. */
static bool is_new_connection(const struct connection *c,
			      const struct segment *seg)
{
	bool has_base = c->is_decided || c->stream.has_base;
	uint32_t base = c->is_decided ? c->first_seq + 1 : c->stream.base;

	if ((seg->flags & (SEGMENT_SYN | SEGMENT_ACK)) != SEGMENT_SYN)
		return false;
	if (c->has_syn)
		return seg->seq != c->first_seq;
	/* late, and of this very connection: what was seen follows it */
	return !address_equal(&c->client, &seg->source) ||
	       (has_base && base - (seg->seq + 1) >= REASSEMBLY_MAX);
}

/* A client's segment, or the server's answer to its SYN. */
static int take_segment(struct connection *c, const struct segment *seg)
{
	bool is_client = address_equal(&c->client, &seg->source) &&
			 address_equal(&c->server, &seg->destination);
	uint32_t seq = seg->seq;
	int err = 0;

	if (!is_client) {
		if (seg->flags & SEGMENT_SYN && !c->stream.has_base)
			err = reassembly_anchor(&c->stream, seg->ack);
		return err;
	}
	if (seg->flags & SEGMENT_SYN) {
		c->has_syn = true;
		c->first_seq = seq++;
		err = reassembly_anchor(&c->stream, seq);
	}
	if (err || !seg->payload.len)
		return err;
	c->nr_segments++;
	return reassembly_add(&c->stream, seq, seg->payload);
}

static void look(struct sniffer *s, struct connection *c)
{
	struct tls_hello hello;
	enum tls_result result;

	if (!c->stream.len || c->stream.len < c->need)
		return;
	result = parse(s, c, &hello);
	c->need = result == TLS_NEED_MORE ? hello.need : 0;
	if (result == TLS_NEED_MORE ||
	    (result > TLS_NO_NAME && !c->stream.is_anchored &&
	     c->nr_segments < NR_LATE_SEGMENTS))
		return;
	decide(s, c, result, &hello);
}

static int add_segment(struct sniffer *s, const struct segment *seg)
{
	struct connection *c = find(s, seg);
	uint32_t base;
	int err = 0;

	if (c && is_new_connection(c, seg)) {
		remove_connection(s, c);
		c = NULL;
	}
	if (!c)
		c = begin(s, seg, &err);
	if (!c)
		return err;
	TAILQ_REMOVE(c->is_decided ? &s->decided : &s->pending, c, by_use);
	TAILQ_INSERT_TAIL(c->is_decided ? &s->decided : &s->pending, c, by_use);
	if (c->is_decided)
		return 0;
	base = c->stream.base;
	s->nr_bytes -= reassembly_memory(&c->stream);
	err = take_segment(c, seg);
	s->nr_bytes += reassembly_memory(&c->stream);
	if (c->stream.base != base)
		c->need = 0;
	if (err == -ENOSPC)
		s->counters.nr_not_kept++;
	else if (err)
		return err;
	look(s, c);
	make_room(s, c);
	return 0;
}

int sniffer_add(struct sniffer *s, const struct capture_frame *frame)
{
	struct segment seg;

	switch (frame_parse(frame, &seg)) {
	case FRAME_TCP:
		s->counters.nr_segments++;
		return add_segment(s, &seg);
	case FRAME_FRAGMENT:
		s->counters.nr_fragments++;
		return 0;
	case FRAME_DAMAGED:
		s->counters.nr_damaged++;
		return 0;
	case FRAME_OTHER:
	default:
		s->counters.nr_other++;
		return 0;
	}
}

void sniffer_finish(struct sniffer *s)
{
	struct connection *c;

	while ((c = TAILQ_FIRST(&s->pending)))
		give_up(s, c);
}

void sniffer_free(struct sniffer *s)
{
	struct connection *c;

	if (!s)
		return;
	while ((c = TAILQ_FIRST(&s->pending)) ||
	       (c = TAILQ_FIRST(&s->decided))) {
		if (!c->is_decided)
			forget_stream(s, c);
		TAILQ_REMOVE(c->is_decided ? &s->decided : &s->pending, c,
			     by_use);
		free(c);
	}
	free(s);
}

const struct sniffer_counters *sniffer_counters(const struct sniffer *s)
{
	return &s->counters;
}
