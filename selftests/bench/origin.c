// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The server behind the proxies: one thread, and as little work as will do.
 * Reads a ClientHello, finds the order in its session ID and carries it out.
 */
#include <unistd.h>

#include "net.h"
#include "wire.h"

struct conn {
	int fd;
	bool is_sending;
	uint8_t head[HELLO_ORDER_END];
	struct wire_order order;
	uint64_t got, put;  /* bytes of the hello, then of what follows */
	uint64_t hello_len; /* 0: not known yet */
	uint64_t seq;	    /* of the request that is being read */
};

static int ep;
static uint8_t *input, *stream;

static void conn_free(struct conn *c)
{
	close(c->fd);
	free(c);
}

static void send_message(struct conn *c, size_t size, uint64_t seq)
{
	uint8_t message[RESPONSE_SIZE];

	wire_message(message, size, c->order.nonce, seq);
	if (send(c->fd, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		die("origin: send: %s", strerror(errno));
}

/* Returns false once the stream is out. */
static bool send_stream(struct conn *c)
{
	uint64_t left = c->order.size - c->put;
	const uint8_t *at = stream_at(stream, c->order.nonce, c->put);
	ssize_t n;

	n = send(c->fd, at, left < CHUNK ? left : CHUNK, MSG_NOSIGNAL);
	if (n > 0)
		c->put += (uint64_t)n;
	else if (errno != EAGAIN)
		die("origin: send: %s", strerror(errno));
	return c->put < c->order.size;
}

/* Returns the bytes of buf that are the hello's. */
static size_t take_hello(struct conn *c, const uint8_t *buf, size_t len)
{
	size_t n = sizeof(c->head) - c->got;

	if (c->got < sizeof(c->head))
		memcpy(c->head + c->got, buf, n < len ? n : len);
	if (c->got + len < sizeof(c->head)) {
		c->got += len;
		return len;
	}
	c->hello_len = HELLO_RECORD + (size_t)(c->head[3] << 8 | c->head[4]);
	memcpy(&c->order, c->head + HELLO_SESSION_ID, sizeof(c->order));
	if (c->order.magic != WIRE_MAGIC)
		die("origin: what came is not from the generator");
	n = (size_t)(c->hello_len - c->got);
	n = n < len ? n : len;
	c->got += n;
	return n;
}

static bool has_hello(const struct conn *c)
{
	return c->hello_len && c->got >= c->hello_len;
}

static void take_requests(struct conn *c, const uint8_t *buf, size_t len)
{
	while (len) {
		size_t off = (c->got - c->hello_len) % REQUEST_SIZE;
		size_t n = REQUEST_SIZE - off < len ? REQUEST_SIZE - off : len;

		if (!wire_message_ok(buf, n, off, c->order.nonce, c->seq))
			die("origin: a request was altered on its way");
		c->got += n;
		buf += n;
		len -= n;
		if (off + n == REQUEST_SIZE)
			send_message(c, RESPONSE_SIZE, c->seq++);
	}
}

/* Returns false once all of it is here. */
static bool take_stream(struct conn *c, const uint8_t *buf, size_t len)
{
	uint64_t pos = c->got - c->hello_len;

	if (pos + len > c->order.size ||
	    !stream_ok(buf, len, c->order.nonce, pos))
		die("origin: the upload was altered on its way");
	c->got += len;
	if (pos + len < c->order.size)
		return true;
	send_message(c, ANSWER_SIZE, 0);
	return false;
}

/* The hello is complete. Returns false when all is done. */
static bool start_order(struct conn *c)
{
	switch (c->order.op) {
	case WIRE_CONN:
		send_message(c, ANSWER_SIZE, 0);
		return false;
	case WIRE_DOWN:
		c->is_sending = true;
		net_watch(ep, EPOLL_CTL_MOD, c->fd, EPOLLOUT, c);
		return true;
	case WIRE_UP:
		return true;
	default:
		c->seq = 1;
		send_message(c, ANSWER_SIZE, 0);
		return true;
	}
}

static bool take_bytes(struct conn *c, const uint8_t *buf, size_t len)
{
	if (!has_hello(c)) {
		size_t n = take_hello(c, buf, len);

		if (has_hello(c) && !start_order(c))
			return false;
		buf += n;
		len -= n;
	}
	if (!len)
		return true;
	if (c->order.op == WIRE_UP)
		return take_stream(c, buf, len);
	take_requests(c, buf, len);
	return true;
}

/* A connection that ends before its hello is a probe for readiness. */
static bool on_readable(struct conn *c)
{
	ssize_t n = recv(c->fd, input, CHUNK, 0);

	if (n > 0)
		return take_bytes(c, input, (size_t)n);
	if (n < 0 && errno == EAGAIN)
		return true;
	if (has_hello(c) && c->order.op == WIRE_UP)
		die("origin: the upload was cut short");
	return false;
}

/* Returns false when the connection has served its purpose. */
static bool on_event(struct conn *c)
{
	return c->is_sending ? send_stream(c) : on_readable(c);
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct conn *c = calloc(1, sizeof(*c));

		if (!c)
			die("origin: out of memory");
		c->fd = fd;
		net_nodelay(fd);
		net_watch(ep, EPOLL_CTL_ADD, fd, EPOLLIN, c);
	}
	if (errno != EAGAIN && errno != ECONNABORTED)
		die("origin: accept: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct sockaddr_in sa;
	struct epoll_event events[64];
	int listener;

	if (argc != 2)
		die("usage: origin ADDRESS:PORT");
	net_raise_descriptors();
	wire_init();
	sa = net_address(argv[1]);
	input = malloc(CHUNK);
	stream = stream_new();
	ep = epoll_create1(0);
	if (ep < 0 || !input || !stream)
		die("origin: %s", strerror(errno));
	listener = net_listen(&sa);
	net_watch(ep, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
	for (;;) {
		int n = epoll_wait(ep, events, 64, -1);

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (!c)
				accept_all(listener);
			else if (!on_event(c))
				conn_free(c);
		}
	}
}
