// SPDX-License-Identifier: GPL-2.0-or-later
#include "tcp.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay.h"
#include "upstream.h"

enum {
	RESET_CHECK_MS = 32,  /* how often a reset looks at the queue */
	RESET_MAX_MS = 2000,  /* and how long it waits for it at most */
};

static const struct config_listen *find_listen(const struct loop *l,
					       const struct conn *c)
{
	static const struct config_listen removed = { 0 };
	const struct config_listen *config =
		snapshot_find_listen(l->snapshot, c->listener);

	return config ? config : &removed;
}

static void add_ready(struct loop *l, struct conn *c)
{
	if (c->is_ready)
		return;
	c->is_ready = true;
	c->next_ready = l->ready;
	l->ready = c;
}

static void run_reset(struct loop *l, struct conn *c)
{
	if (relay_finish(l, c) || l->now_ms >= c->active_ms + RESET_MAX_MS) {
		conn_reset(l, c);
		return;
	}
	timer_arm(&l->timers, &c->timer, l->now_ms + RESET_CHECK_MS);
}

static void begin_reset(struct loop *l, struct conn *c)
{
	c->phase = CONN_RESET;
	c->active_ms = l->now_ms;
	run_reset(l, c);
}

static void run_relay(struct loop *l, struct conn *c)
{
	switch (relay_pump(l, c)) {
	case RELAY_WAIT:
		break;
	case RELAY_AGAIN:
		add_ready(l, c);
		break;
	case RELAY_DONE:
		conn_close(l, c);
		break;
	case RELAY_RESET:
		begin_reset(l, c);
		break;
	}
}

/*
 * An error that no read or write has met: the direction from that side has
 * ended already, or its way on is blocked, so that nobody looks.
 */
static void check_error(struct loop *l, struct conn *c, unsigned int side,
			uint32_t events)
{
	if (c->phase != CONN_RELAY || !(events & EPOLLERR))
		return;
	c->end = side == CLIENT ? END_CLIENT_RESET : END_SERVER_RESET;
	begin_reset(l, c);
}

/* What outlives the bytes: for the log, for the PROXY header. */
static void remember(struct conn *c, const struct decision *d)
{
	struct span list = d->hello.alpn, alpn;

	c->name_len = (uint8_t)d->hello.name_len;
	memcpy(c->name, d->hello.name, d->hello.name_len);
	c->rule = (uint8_t)d->rule;
	c->skip = (uint32_t)d->skip;
	if (d->has_proxied) {
		c->has_proxied = true;
		c->client = d->client;
	}
	c->route_at = c->name_len;
	if (d->route) {
		size_t suffix = strlen(d->route->pattern);

		c->is_route_exact = d->route->pattern[0] != '*';
		suffix -= !c->is_route_exact;
		c->route_at = (uint8_t)(d->hello.name_len - suffix);
	}
	if (d->route && d->route->alpn)
		alpn = span_of_text(d->route->alpn);
	else if (!tls_next_alpn(&list, &alpn))
		return;
	c->is_alpn_cut = alpn.len > CONN_ALPN_MAX;
	c->alpn_len = (uint8_t)(c->is_alpn_cut ? CONN_ALPN_MAX : alpn.len);
	memcpy(c->alpn, alpn.p, c->alpn_len);
}

/* Whom to trust goes by who connected, not by what a PROXY header said. */
static struct address find_peer(const struct conn *c)
{
	struct address peer = c->client;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (c->has_proxied &&
	    !getpeername(c->sides[CLIENT].fd, (void *)&sa, &len))
		address_from_sockaddr((void *)&sa, &peer);
	return peer;
}

/* true: `bytes` are no longer needed, or kept; false: more are. */
static bool decide_and_connect(struct loop *l, struct conn *c,
			       struct span bytes)
{
	struct address peer = find_peer(c);
	struct decision d;

	decide(l->snapshot, find_listen(l, c), &peer, bytes, &l->hello, &d);
	if (d.answer == DECIDE_NEED_MORE) {
		c->need = (uint32_t)d.need;
		return false;
	}
	remember(c, &d);
	if (d.answer == DECIDE_REFUSE)
		conn_refuse(l, c, d.reason, d.alert);
	else if (upstream_connect(l, c, d.backend, bytes) == UPSTREAM_READY)
		run_relay(l, c);
	return true;
}

/* A server failed: the same bytes, perhaps under a newer configuration. */
static void decide_again(struct loop *l, struct conn *c)
{
	struct buffer *kept = c->flows[INBOUND].buffer;

	if (!decide_and_connect(l, c, kept ? buffer_span(kept) :
					     span_of(NULL, 0)))
		conn_refuse(l, c, REASON_CONNECT_FAILED, 0);
}

static bool keep_hello(struct loop *l, struct conn *c, struct span bytes)
{
	int err = buffer_append(&l->buffers, &c->flows[INBOUND].buffer, bytes);

	if (err)
		conn_refuse(l, c, err == -ENOBUFS ? REASON_TLS_HELLO_LARGE :
						    REASON_MEMORY, 0);
	return !err;
}

/* One more piece of the hello. true: read on. */
static bool take_hello(struct loop *l, struct conn *c, struct span piece)
{
	struct span all = piece;

	if (c->flows[INBOUND].buffer) {
		if (!keep_hello(l, c, piece))
			return false;
		all = buffer_span(c->flows[INBOUND].buffer);
	}
	if (all.len >= c->need && decide_and_connect(l, c, all))
		return false;
	return c->flows[INBOUND].buffer || keep_hello(l, c, piece);
}

static void read_hello(struct loop *l, struct conn *c)
{
	struct conn_side *s = &c->sides[CLIENT];
	ssize_t n;

	while (s->is_readable) {
		n = recv(s->fd, l->scratch, sizeof(l->scratch), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			s->is_readable = false;
			break;
		}
		if (n <= 0) {
			conn_refuse(l, c, REASON_HELLO_EOF, 0);
			return;
		}
		if (conn_has_emptied(s, (size_t)n, sizeof(l->scratch)))
			s->is_readable = false;
		if (!take_hello(l, c, span_of(l->scratch, (size_t)n)))
			return;
	}
	if (conn_watch(l, c, CLIENT, false))
		conn_refuse(l, c, REASON_MEMORY, 0);
}

static void begin(struct loop *l, struct conn *c,
		  const struct config_listen *config)
{
	const struct config_timeouts *t = &l->snapshot->config->timeouts;

	timer_arm(&l->timers, &c->timer, l->now_ms + t->hello_ms);
	if (config->has_target)
		decide_and_connect(l, c, span_of(NULL, 0));
	else
		read_hello(l, c);
}

/* 0: taken in, or refused; 1: the queue is empty; -errno: we can not. */
static int accept_one(struct loop *l, struct listener *listener,
		      const struct config_listen *config, int fd)
{
	uint32_t limit = l->snapshot->config->limits.connections;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct address client = { .family = AF_UNSPEC };
	struct conn *c = NULL;
	int cfd;

	cfd = accept4(fd, (void *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (cfd < 0 && errno == EAGAIN)
		return 1;
	if (cfd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				       errno == ENOMEM ? -errno : 0;
	address_from_sockaddr((void *)&sa, &client);
	if (atomic_fetch_add_explicit(&l->stats->connections, 1,
				      memory_order_relaxed) < limit)
		c = conn_new(l, cfd, listener, &client);
	if (!c) {
		atomic_fetch_sub_explicit(&l->stats->connections, 1,
					  memory_order_relaxed);
		conn_refuse_at_accept(l, listener, &client,
				      REASON_CONNECTIONS_TOTAL);
		close(cfd);
		return 0;
	}
	begin(l, c, config);
	return 0;
}

int tcp_accept(struct loop *l, struct listener *listener,
	       const struct config_listen *config, int fd)
{
	int i, err = 0;

	for (i = 0; i < TCP_ACCEPTS && !err; i++)
		err = accept_one(l, listener, config, fd);
	return err < 0 ? err : !err;
}

static void run_connect(struct loop *l, struct conn *c, unsigned int side,
			uint32_t events)
{
	enum upstream_result result;

	if (side == CLIENT) {
		/* half-closed is fine, gone is not */
		if (events & (EPOLLERR | EPOLLHUP))
			conn_refuse(l, c, REASON_CLIENT_GONE, 0);
		return;
	}
	result = upstream_event(l, c);
	if (result == UPSTREAM_READY)
		run_relay(l, c);
	else if (result == UPSTREAM_WAIT && !c->server)
		decide_again(l, c);
}

/* Until the client's end comes: nothing of it is wanted any more. */
static void run_linger(struct loop *l, struct conn *c)
{
	ssize_t n;

	do
		n = recv(c->sides[CLIENT].fd, l->scratch, sizeof(l->scratch),
			 MSG_DONTWAIT | MSG_TRUNC);
	while (n > 0);
	if (n == 0 || errno != EAGAIN)
		conn_close(l, c);
}

void tcp_event(struct loop *l, struct conn *c, unsigned int side,
	       uint32_t events)
{
	struct conn_side *s = &c->sides[side];

	if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->is_readable = true;
	if (events & EPOLLPRI)
		s->is_urgent = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->has_hangup = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		s->is_writable = true;

	switch ((enum conn_phase)c->phase) {
	case CONN_FREE:
		break;
	case CONN_HELLO:
		read_hello(l, c);
		break;
	case CONN_CONNECT:
		run_connect(l, c, side, events);
		break;
	case CONN_RELAY:
		run_relay(l, c);
		check_error(l, c, side, events);
		break;
	case CONN_LINGER:
		run_linger(l, c);
		break;
	case CONN_RESET:
		run_reset(l, c);
		break;
	}
}

static void check_idle(struct loop *l, struct conn *c)
{
	uint64_t due = c->active_ms + l->snapshot->config->timeouts.idle_ms;

	if (l->now_ms < due) {
		timer_arm(&l->timers, &c->timer, due);
		return;
	}
	c->end = END_IDLE;
	conn_close(l, c);
}

void tcp_timeout(void *loop, struct timer *t)
{
	struct loop *l = loop;
	struct conn *c = (void *)((char *)t - offsetof(struct conn, timer));

	switch ((enum conn_phase)c->phase) {
	case CONN_FREE:
		break;
	case CONN_HELLO:
		conn_refuse(l, c, REASON_HELLO_TIMEOUT, 0);
		break;
	case CONN_CONNECT:
		if (c->server)
			upstream_give_up(l, c, REASON_CONNECT_TIMEOUT);
		decide_again(l, c);
		break;
	case CONN_RELAY:
		check_idle(l, c);
		break;
	case CONN_LINGER:
		conn_close(l, c);
		break;
	case CONN_RESET:
		run_reset(l, c);
		break;
	}
}

void tcp_run_ready(struct loop *l)
{
	struct conn *c = l->ready, *next;

	l->ready = NULL;
	for (; c; c = next) {
		next = c->next_ready;
		c->is_ready = false;
		if (c->phase == CONN_RELAY)
			run_relay(l, c);
	}
}

void tcp_end_all(struct loop *l)
{
	struct conn *c;

	while ((c = l->live)) {
		if (c->phase == CONN_HELLO || c->phase == CONN_CONNECT) {
			conn_refuse(l, c, REASON_DRAINING, 0);
			continue;
		}
		c->end = END_DRAINED;
		conn_close(l, c);
	}
}
