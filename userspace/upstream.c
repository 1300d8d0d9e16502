// SPDX-License-Identifier: GPL-2.0-or-later
#include "upstream.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proxy_protocol.h"

#define BUSY_MS 32 /* how soon a server without a place is asked again */

/*
 * The descriptor of a started connection, or -errno. With something to say,
 * the handshake's last ACK waits for the first write and travels with it.
 */
static int start(const struct server *s, bool has_bytes)
{
	sa_family_t family = s->sockaddr.sa.sa_family;
	int fd, err, on = 1, off = 0;

	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (family != AF_UNIX && has_bytes)
		setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
	if (!connect(fd, &s->sockaddr.sa, s->sockaddr_len) ||
	    errno == EINPROGRESS)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOBUFS ||
	       err == -ENOMEM;
}

/* A unix socket's queue is full, or our ports are: the server is not down. */
static bool is_busy(int err)
{
	return err == -EAGAIN || err == -EADDRNOTAVAIL;
}

/* Idle pipes have descriptors that a connection may need more. */
static int start_anyhow(struct loop *l, const struct server *s, bool has_bytes)
{
	int fd = start(s, has_bytes);

	if (!is_shortage(fd) || !l->pipes.nr_idle)
		return fd;
	pipe_pool_trim(&l->pipes);
	return start(s, has_bytes);
}

static void note_failure(struct loop *l, struct conn *c, struct server *s,
			 enum reason why, int err)
{
	if (!is_busy(-err)) {
		conn_log_server_failure(l, s, err);
		server_mark_failure(s, (uint32_t)l->now_ms);
	}
	if (c->opening.tries.nr_failed < BACKEND_TRIES_MAX)
		c->opening.tries.failed[c->opening.tries.nr_failed++] = s;
	c->reason = (uint8_t)why;
}

static enum upstream_result refuse(struct loop *l, struct conn *c,
				   enum reason why)
{
	conn_refuse(l, c, why,
		    decide_alert(l->snapshot, (enum decide_rule)c->rule,
				 TLS_ALERT_INTERNAL_ERROR));
	return UPSTREAM_ENDED;
}

/* Where the client wanted to go: its PROXY header is still there to be read. */
static struct address find_destination(const struct conn *c, struct span bytes)
{
	struct proxy_header header = { .has_addresses = false };
	struct address local = { .family = AF_UNSPEC };
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (c->has_proxied && proxy_parse(bytes, &header) == PROXY_OK)
		return header.destination;
	if (!getsockname(c->sides[CLIENT].fd, (void *)&sa, &len))
		address_from_sockaddr((void *)&sa, &local);
	return local;
}

/* The header that the backend asks for; 0: none. */
static size_t write_header(struct loop *l, struct conn *c,
			   const struct config_backend *b, struct span bytes,
			   uint8_t *out)
{
	struct proxy_fields f = { .source = c->client };
	char id[CONN_ID_LEN + 1];

	if (!b->proxy)
		return 0;
	f.destination = find_destination(c, bytes);
	if (b->proxy_tlvs & PROXY_TLV_ALPN && !c->is_alpn_cut)
		f.alpn = span_of(c->alpn, c->alpn_len);
	if (b->proxy_tlvs & PROXY_TLV_AUTHORITY)
		f.authority = span_of(c->name, c->name_len);
	if (b->proxy_tlvs & PROXY_TLV_UNIQUE_ID) {
		conn_write_id(l, c, id);
		c->has_id = true;
		f.unique_id = span_of(id, CONN_ID_LEN);
	}
	return proxy_write(b->proxy, &f, out);
}

static int keep(struct loop *l, struct conn *c, struct span bytes)
{
	if (c->flows[INBOUND].buffer || !bytes.len)
		return 0; /* they are kept already */
	return buffer_append(&l->buffers, &c->flows[INBOUND].buffer, bytes);
}

/*
 * The first write. What the server's socket did not take stays in the buffer
 * of the flow. -EAGAIN: not connected yet; other errors: lost.
 */
static int send_first(struct loop *l, struct conn *c,
		      const struct config_backend *b, struct span bytes)
{
	uint8_t header[PROXY_HEADER_MAX];
	struct iovec iov[2] = {
		{ .iov_base = header,
		  .iov_len = write_header(l, c, b, bytes, header) },
		{ .iov_base = (void *)(uintptr_t)(bytes.p + c->skip),
		  .iov_len = bytes.len - c->skip },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	size_t len = iov[0].iov_len + iov[1].iov_len, done;
	struct buffer *rest = NULL;
	ssize_t n = 0;
	int i, err = 0;

	if (len)
		n = sendmsg(c->sides[SERVER].fd, &msg,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	for (i = 0, done = (size_t)n; i < 2 && !err && (size_t)n < len; i++) {
		size_t cut = done < iov[i].iov_len ? done : iov[i].iov_len;

		done -= cut;
		err = buffer_append(&l->buffers, &rest,
				    span_of((uint8_t *)iov[i].iov_base + cut,
					    iov[i].iov_len - cut));
	}
	buffer_put(&l->buffers, c->flows[INBOUND].buffer);
	c->flows[INBOUND].buffer = rest;
	c->flows[INBOUND].bytes = bytes.len - c->skip;
	stats_add(&l->counters->bytes_in, bytes.len - c->skip);
	return err;
}

static enum upstream_result begin_relay(struct loop *l, struct conn *c)
{
	const struct config_timeouts *t = &l->snapshot->config->timeouts;

	if (conn_watch(l, c, CLIENT, false) ||
	    conn_watch(l, c, SERVER, c->flows[INBOUND].buffer != NULL))
		return refuse(l, c, REASON_MEMORY);
	server_mark_success(c->server);
	atomic_fetch_add_explicit(&c->server->connections_total, 1,
				  memory_order_relaxed);
	c->sides[SERVER].is_writable = true;
	conn_end_opening(c);
	c->is_relayed = true;
	c->phase = CONN_RELAY;
	c->reason = REASON_NONE;
	c->active_ms = l->now_ms;
	stats_add(&l->counters->engine_rw, 1);
	/* the hello's deadline ends here, and is never left on the flow */
	timer_arm(&l->timers, &c->timer, l->now_ms + t->idle_ms);
	return UPSTREAM_READY;
}

static enum upstream_result wait_for_server(struct loop *l, struct conn *c,
					    struct span bytes)
{
	const struct config_timeouts *t = &l->snapshot->config->timeouts;

	if (keep(l, c, bytes) || conn_watch(l, c, CLIENT, false) ||
	    conn_watch(l, c, SERVER, true))
		return refuse(l, c, REASON_MEMORY);
	c->phase = CONN_CONNECT;
	timer_cancel(&l->timers, &c->timer);
	timer_arm(&l->timers, &c->timer, l->now_ms + t->connect_ms);
	return UPSTREAM_WAIT;
}

static void drop_server(struct loop *l, struct conn *c, enum reason why,
			int err)
{
	struct server *s = c->server;

	note_failure(l, c, s, why, err);
	close(c->sides[SERVER].fd);
	c->sides[SERVER] = (struct conn_side){ .fd = -1 };
	c->server = NULL;
	server_put(s);
}

static enum upstream_result no_server(struct loop *l, struct conn *c)
{
	enum reason why = c->opening.tries.nr_failed ? (enum reason)c->reason :
					       REASON_NO_SERVER;

	return refuse(l, c, why);
}

/* A client that waits for a busy server waits as long as for a silent one. */
static uint64_t connect_until(const struct loop *l, const struct conn *c)
{
	const struct config_timeouts *t = &l->snapshot->config->timeouts;

	return c->accepted_ms + t->hello_ms + t->connect_ms;
}

/* No server had a place in its queue: all of them again in a moment. */
static enum upstream_result wait_for_place(struct loop *l, struct conn *c,
					   struct span bytes)
{
	if (keep(l, c, bytes) || conn_watch(l, c, CLIENT, false))
		return refuse(l, c, REASON_MEMORY);
	c->phase = CONN_CONNECT;
	c->opening.tries.nr_failed = 0;
	timer_cancel(&l->timers, &c->timer);
	timer_arm(&l->timers, &c->timer, l->now_ms + BUSY_MS);
	return UPSTREAM_WAIT;
}

/* Nothing to write, so the write can not tell whether it is connected. */
static bool has_to_ask(const struct conn *c, const struct config_backend *b,
		       struct span bytes)
{
	return !b->proxy && bytes.len == c->skip &&
	       c->server->sockaddr.sa.sa_family != AF_UNIX;
}

static enum upstream_result try_server(struct loop *l, struct conn *c,
				       const struct config_backend *b,
				       struct span bytes)
{
	int err;

	if (has_to_ask(c, b, bytes))
		return wait_for_server(l, c, bytes);
	/* a near server has answered by now: it saves a turn of the loop */
	err = send_first(l, c, b, bytes);
	if (!err)
		return begin_relay(l, c);
	if (err == -EAGAIN || err == -ENOTCONN)
		return wait_for_server(l, c, bytes);
	/* some of the bytes are with the server: nobody else may have them */
	if (err == -ENOMEM)
		return refuse(l, c, REASON_MEMORY);
	drop_server(l, c, REASON_CONNECT_FAILED, -err);
	return UPSTREAM_WAIT;
}

enum upstream_result upstream_connect(struct loop *l, struct conn *c,
				      unsigned int backend, struct span bytes)
{
	struct backend *b = &l->snapshot->backends->backends[backend];
	enum upstream_result result;
	bool has_busy = false;
	struct server *s;
	int fd;

	while (c->opening.tries.nr_failed < BACKEND_TRIES_MAX) {
		s = backend_pick(b, &c->client, (uint32_t)l->now_ms, &c->opening.tries);
		if (!s)
			break;
		fd = start_anyhow(l, s, bytes.len > c->skip);
		if (is_shortage(fd))
			return refuse(l, c, REASON_DESCRIPTORS);
		if (fd < 0) {
			note_failure(l, c, s, REASON_CONNECT_FAILED, -fd);
			has_busy |= is_busy(fd);
			continue;
		}
		server_get(s);
		c->server = s;
		c->sides[SERVER].fd = fd;
		result = try_server(l, c, b->config, bytes);
		if (result != UPSTREAM_WAIT || c->server)
			return result;
	}
	if (has_busy && l->now_ms < connect_until(l, c))
		return wait_for_place(l, c, bytes);
	return no_server(l, c);
}

void upstream_give_up(struct loop *l, struct conn *c, enum reason why)
{
	drop_server(l, c, why, ETIMEDOUT);
}

/* The backend's configuration may be a newer one than when we asked. */
static const struct config_backend *find_config(const struct loop *l,
						const struct conn *c)
{
	int i = config_find_backend(l->snapshot->config,
				    c->server->backend_name);

	return i < 0 ? NULL : &l->snapshot->config->backends[i];
}

enum upstream_result upstream_event(struct loop *l, struct conn *c)
{
	struct buffer *kept = c->flows[INBOUND].buffer;
	const struct config_backend *b = find_config(l, c);
	struct span bytes = kept ? buffer_span(kept) : span_of(NULL, 0);
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(c->sides[SERVER].fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (!err && b)
		err = -send_first(l, c, b, bytes);
	if (!err && b)
		return begin_relay(l, c);
	if (err == EAGAIN || err == ENOTCONN)
		return UPSTREAM_WAIT;
	if (err == ENOMEM)
		return refuse(l, c, REASON_MEMORY);
	/* without an error the backend was taken out of the configuration */
	drop_server(l, c, REASON_CONNECT_FAILED, err ? err : ECANCELED);
	return UPSTREAM_WAIT;
}
