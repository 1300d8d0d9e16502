// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client before the proxies: a closed loop of one thread that does a
 * fixed amount of work, so that CPU per unit of it compares. Checks every
 * byte. Warms up, prints `warm`, waits for a line on stdin, works, prints one
 * line of JSON, and waits for the end of stdin: the driver reads the clocks
 * of all processes in between.
 */
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "hello.h"
#include "net.h"

enum state { SENDS_HELLO, UPLOADS, READS_ANSWER, READS_STREAM, READY, WAITS };

struct conn {
	int fd;
	enum state state;
	uint64_t nonce, seq;
	uint64_t got, put; /* bytes of the message or stream at hand */
	uint64_t sent_ns;
};

/* Latencies: 64 steps per power of two, so within 1.6 %. */
#define STEPS	64
#define BUCKETS (STEPS * 59)

struct load {
	enum wire_op op;
	struct sockaddr_in to;
	int ep;
	uint64_t size; /* bytes of a connection's stream */
	uint64_t started, done, target;
	uint64_t nonce;
	uint8_t hello[HELLO_SIZE];
	uint8_t *input, *stream;
	struct conn *conns;
	size_t nr_conns;
	uint64_t latency[BUCKETS];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t latency_bucket(uint64_t ns)
{
	unsigned int shift;

	if (ns < STEPS)
		return (size_t)ns;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - 6;
	return shift * STEPS + (size_t)(ns >> shift);
}

static double latency_us(const struct load *l, double quantile)
{
	uint64_t total = 0, seen = 0;
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		total += l->latency[i];
	for (i = 0; i < BUCKETS - 1; i++) {
		seen += l->latency[i];
		if ((double)seen >= quantile * (double)total)
			break;
	}
	if (i < STEPS)
		return (double)i / 1e3;
	return (double)((i % STEPS + STEPS) << (i / STEPS - 1)) / 1e3;
}

static void watch(struct load *l, struct conn *c, uint32_t events)
{
	net_watch(l->ep, EPOLL_CTL_MOD, c->fd, events | EPOLLRDHUP, c);
}

static void send_request(struct load *l, struct conn *c)
{
	uint8_t request[REQUEST_SIZE];

	l->started++;
	wire_message(request, sizeof(request), c->nonce, ++c->seq);
	c->state = WAITS;
	c->got = 0;
	c->sent_ns = now_ns();
	if (send(c->fd, request, sizeof(request), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(request))
		die("load: send: %s", strerror(errno));
}

/* Returns false if the socket takes no more for now. */
static bool send_hello(struct load *l, struct conn *c)
{
	struct wire_order order = { WIRE_MAGIC, l->op, l->size, c->nonce };
	ssize_t n;

	hello_order(l->hello, &order);
	n = send(c->fd, l->hello, sizeof(l->hello), MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n != (ssize_t)sizeof(l->hello))
		die("load: send: %s", strerror(errno));
	if (l->op == WIRE_UP)
		c->state = UPLOADS;
	else
		c->state = l->op == WIRE_DOWN ? READS_STREAM : READS_ANSWER;
	return true;
}

static void upload(struct load *l, struct conn *c)
{
	uint64_t left = l->size - c->put;
	const uint8_t *at = stream_at(l->stream, c->nonce, c->put);
	ssize_t n;

	n = send(c->fd, at, left < CHUNK ? left : CHUNK, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		die("load: send: %s", strerror(errno));
	c->put += n > 0 ? (uint64_t)n : 0;
	if (c->put == l->size) {
		c->state = READS_ANSWER;
		watch(l, c, EPOLLIN);
	}
}

static void conn_open(struct load *l, struct conn *c)
{
	uint32_t events = EPOLLIN;

	*c = (struct conn){ .fd = net_connect(&l->to), .nonce = ++l->nonce };
	l->started++;
	if (!send_hello(l, c) || l->op == WIRE_UP)
		events |= EPOLLOUT;
	net_watch(l->ep, EPOLL_CTL_ADD, c->fd, events | EPOLLRDHUP, c);
}

static void on_writable(struct load *l, struct conn *c)
{
	if (c->state == UPLOADS)
		upload(l, c);
	else if (c->state == SENDS_HELLO && send_hello(l, c) &&
		 c->state != UPLOADS)
		watch(l, c, EPOLLIN);
}

/* The next connection not yet open, when there is one still to start. */
static void open_next(struct load *l, struct conn *c)
{
	if (l->started >= l->target)
		return;
	if (l->op == WIRE_IDLE || l->op == WIRE_REQ)
		c = &l->conns[l->started];
	conn_open(l, c);
}

static void on_answer(struct load *l, struct conn *c)
{
	c->state = READY;
	if (l->op == WIRE_IDLE || l->op == WIRE_REQ) {
		l->done++;
		open_next(l, c);
	}
}

static void on_response(struct load *l, struct conn *c)
{
	l->latency[latency_bucket(now_ns() - c->sent_ns)]++;
	l->done++;
	c->state = READY;
	if (l->started < l->target)
		send_request(l, c);
}

static void on_end(struct load *l, struct conn *c)
{
	bool is_whole = c->state == READY;

	if (l->op == WIRE_DOWN)
		is_whole = c->got == l->size;
	if (!is_whole || l->op == WIRE_IDLE || l->op == WIRE_REQ)
		die("load: connection %" PRIu64
		    " ended early, at byte %" PRIu64,
		    c->nonce, c->got);
	close(c->fd);
	l->done++;
	open_next(l, c);
}

static void take_message(struct load *l, struct conn *c, size_t n, size_t size)
{
	if (c->got + n > size ||
	    !wire_message_ok(l->input, n, c->got, c->nonce, c->seq))
		die("load: an answer was altered on its way");
	c->got += n;
	if (c->got < size)
		return;
	if (c->state == READS_ANSWER)
		on_answer(l, c);
	else
		on_response(l, c);
}

static void on_readable(struct load *l, struct conn *c)
{
	ssize_t n = recv(c->fd, l->input, CHUNK, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		die("load: connection %" PRIu64 ": %s", c->nonce,
		    strerror(errno));
	if (n == 0) {
		on_end(l, c);
	} else if (c->state == READS_STREAM) {
		if (c->got + (uint64_t)n > l->size ||
		    !stream_ok(l->input, (size_t)n, c->nonce, c->got))
			die("load: the download was altered on its way");
		c->got += (uint64_t)n;
	} else if (c->state == READS_ANSWER || c->state == WAITS) {
		take_message(l, c, (size_t)n,
			     c->state == WAITS ? RESPONSE_SIZE : ANSWER_SIZE);
	} else {
		die("load: bytes that nobody asked for");
	}
}

static void run_until_done(struct load *l)
{
	struct epoll_event events[64];

	while (l->done < l->target) {
		int n = epoll_wait(l->ep, events, 64, 30000);

		if (n == 0)
			die("load: nothing moved for 30 s, %" PRIu64
			    " of %" PRIu64 " done",
			    l->done, l->target);
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (events[i].events & EPOLLOUT)
				on_writable(l, c);
			if (events[i].events & ~(uint32_t)EPOLLOUT)
				on_readable(l, c);
		}
	}
}

static void open_conns(struct load *l, uint64_t target, size_t in_flight)
{
	l->started = l->done = 0;
	l->target = target;
	for (size_t i = 0; i < in_flight && l->started < target; i++)
		conn_open(l, &l->conns[i]);
	run_until_done(l);
}

static void exchange(struct load *l, uint64_t requests)
{
	l->started = l->done = 0;
	l->target = requests;
	memset(l->latency, 0, sizeof(l->latency));
	for (size_t i = 0; i < l->nr_conns && l->started < requests; i++)
		send_request(l, &l->conns[i]);
	run_until_done(l);
}

/* work: connections, requests, bytes or idle connections */
static void do_work(struct load *l, uint64_t work)
{
	if (l->op == WIRE_CONN) {
		open_conns(l, work, l->nr_conns);
	} else if (l->op == WIRE_REQ || l->op == WIRE_IDLE) {
		exchange(l, work);
	} else {
		l->size = work / l->nr_conns;
		open_conns(l, l->nr_conns, l->nr_conns);
	}
}

static void warm_up(struct load *l, uint64_t work)
{
	if (l->op == WIRE_REQ || l->op == WIRE_IDLE)
		open_conns(l, l->nr_conns, 64);
	do_work(l, work);
	puts("warm");
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
}

static void report(const struct load *l, uint64_t work, uint64_t ns)
{
	printf("{\"op\": \"%s\", \"work\": %" PRIu64 ", \"seconds\": %.6f",
	       wire_ops[l->op], work, (double)ns / 1e9);
	if (l->op == WIRE_REQ)
		printf(", \"p50_us\": %.2f, \"p99_us\": %.2f",
		       latency_us(l, 0.50), latency_us(l, 0.99));
	puts("}");
	fflush(stdout);
}

static void load_init(struct load *l, const char *name)
{
	net_raise_descriptors();
	wire_init();
	hello_build(l->hello, name);
	l->ep = epoll_create1(0);
	l->input = malloc(CHUNK);
	l->stream = stream_new();
	l->conns = calloc(l->nr_conns, sizeof(*l->conns));
	if (l->ep < 0 || !l->input || !l->stream || !l->conns)
		die("load: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	static struct load l = { .nr_conns = 64 };
	uint64_t work, start;

	if (argc != 7)
		die("usage: load conn|req|down|up|idle ADDRESS:PORT NAME "
		    "CONNECTIONS WARM-UP WORK");
	while (strcmp(argv[1], wire_ops[l.op]))
		if (++l.op > WIRE_IDLE)
			die("load: no such work: %s", argv[1]);
	l.to = net_address(argv[2]);
	l.nr_conns = strtoul(argv[4], NULL, 10);
	work = strtoull(argv[6], NULL, 10);
	if (!l.nr_conns || work < l.nr_conns || strlen(argv[3]) > 200)
		die("load: too few connections, too little work, or too "
		    "long a name");
	load_init(&l, argv[3]);
	warm_up(&l, strtoull(argv[5], NULL, 10));
	start = now_ns();
	do_work(&l, work);
	report(&l, work, now_ns() - start);
	while (getchar() != EOF)
		;
	return 0;
}
