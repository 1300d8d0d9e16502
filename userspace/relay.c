// SPDX-License-Identifier: GPL-2.0-or-later
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ROUNDS = 8,		/* reads of one direction in one turn */
	BULK_MIN = 32 * 1024,	/* a read of this much: splice pays */
	SMALL_MAX = 4 * 1024,	/* a splice of this little: it does not */
};

/*
 * A sink was full. Only then is EPOLLOUT asked for, so that connections that
 * are never blocked are never woken for it; asking looks at the socket again,
 * so no edge is lost in between.
 */
static int block_sink(struct loop *l, struct conn *c, unsigned int flow)
{
	unsigned int side = flow == INBOUND ? SERVER : CLIENT;

	c->sides[side].is_writable = false;
	return conn_watch(l, c, side, true);
}

static void note_progress(struct loop *l, struct conn *c, unsigned int flow,
			  size_t n)
{
	c->flows[flow].bytes += n;
	c->active_ms = l->now_ms;
	stats_add(flow == INBOUND ? &l->counters->bytes_in :
				    &l->counters->bytes_out, n);
}

static int flush_buffer(struct loop *l, struct conn *c, unsigned int flow)
{
	struct conn_flow *f = &c->flows[flow];
	struct buffer *b = f->buffer;
	struct conn_side *sink = conn_sink(c, flow);
	ssize_t n;

	while (b->start < b->end) {
		n = send(sink->fd, b->bytes + b->start, b->end - b->start,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return block_sink(l, c, flow);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		b->start += (uint32_t)n;
		c->active_ms = l->now_ms;
	}
	buffer_put(&l->buffers, b);
	f->buffer = NULL;
	return 0;
}

/* What the sink did not take of a read is kept. 0 or -errno. */
static int forward(struct loop *l, struct conn *c, unsigned int flow,
		   size_t len)
{
	struct conn_side *source = conn_source(c, flow);
	struct conn_side *sink = conn_sink(c, flow);
	const uint8_t *bytes = l->scratch;
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	ssize_t n;

	/* the FIN that is read next shares the segment of the last bytes */
	if (source->has_hangup && len < sizeof(l->scratch))
		flags |= MSG_MORE;
	do
		n = send(sink->fd, bytes, len, flags);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n < 0)
		n = 0;
	if ((size_t)n == len)
		return 0;
	if (buffer_append(&l->buffers, &c->flows[flow].buffer,
			  span_of(bytes + n, len - (size_t)n)))
		return -ENOMEM;
	return block_sink(l, c, flow);
}

/* Whether a direction that reads this much at once should be spliced. */
static bool should_splice(const struct loop *l, const struct conn *c,
			  const struct conn_flow *f, size_t n)
{
	const struct config_relay *r = &l->snapshot->config->relay;

	return n >= BULK_MIN && r->may_splice &&
	       (f->bytes >= r->splice_after_bytes ||
		l->now_ms - c->accepted_ms >= r->splice_after_ms);
}

static void count_engine(struct loop *l, struct conn *c)
{
	bool is_splicing = c->flows[0].is_spliced || c->flows[1].is_spliced;

	if (is_splicing == c->is_splicing)
		return;
	c->is_splicing = is_splicing;
	c->has_spliced |= is_splicing;
	stats_add(&l->counters->engine_splice, is_splicing ? 1 : -1ULL);
	stats_add(&l->counters->engine_rw, is_splicing ? -1ULL : 1);
}

/* A read gave 0 (the end) or -1 (errno). What its step then gives. */
static int read_nothing(struct conn_flow *f, struct conn_side *source,
			ssize_t n, bool *is_source)
{
	if (n < 0 && errno == EINTR)
		return 1;
	source->is_readable = false;
	if (n == 0) {
		f->is_ended = true;
		return 0;
	}
	*is_source = true;
	return errno == EAGAIN ? 0 : -errno;
}

/*
 * One read and its write. 1: go on; 0: wait; -errno: of the source (then
 * *is_source) or of the sink.
 */
static int copy_once(struct loop *l, struct conn *c, unsigned int flow,
		     bool *is_source)
{
	struct conn_flow *f = &c->flows[flow];
	struct conn_side *source = conn_source(c, flow);
	ssize_t n;
	int err;

	n = recv(source->fd, l->scratch, sizeof(l->scratch), MSG_DONTWAIT);
	if (n <= 0)
		return read_nothing(f, source, n, is_source);
	if (conn_has_emptied(source, (size_t)n, sizeof(l->scratch)))
		source->is_readable = false;
	note_progress(l, c, flow, (size_t)n);
	err = forward(l, c, flow, (size_t)n);
	if (err)
		return err;
	if (!f->buffer && should_splice(l, c, f, (size_t)n))
		f->is_spliced = true;
	return source->is_readable && !f->buffer;
}

/* Pipe to sink. 1: the pipe is empty; 0: wait; -errno: of the sink. */
static int drain_pipe(struct loop *l, struct conn *c, unsigned int flow)
{
	struct pipe *pipe = c->flows[flow].pipe;
	ssize_t n;

	while (pipe->bytes) {
		n = splice(pipe->read_fd, NULL, conn_sink(c, flow)->fd, NULL,
			   pipe->bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return block_sink(l, c, flow);
		if (n <= 0)
			return n ? -errno : -EPIPE;
		pipe->bytes -= (uint32_t)n;
		c->active_ms = l->now_ms;
	}
	return 1;
}

static void end_splicing(struct loop *l, struct conn_flow *f)
{
	pipe_put(&l->pipes, f->pipe);
	f->pipe = NULL;
	f->is_spliced = false;
}

/* As copy_once(), through a pipe. */
static int splice_once(struct loop *l, struct conn *c, unsigned int flow,
		       bool *is_source)
{
	struct conn_flow *f = &c->flows[flow];
	struct conn_side *source = conn_source(c, flow);
	ssize_t n;

	if (!f->pipe)
		f->pipe = pipe_get(&l->pipes, l->now_ms);
	if (!f->pipe) {
		f->is_spliced = false;
		return 1;
	}
	n = splice(source->fd, NULL, f->pipe->write_fd, NULL, f->pipe->size,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n <= 0)
		return read_nothing(f, source, n, is_source);
	f->pipe->bytes = (uint32_t)n;
	note_progress(l, c, flow, (size_t)n);
	if (n < SMALL_MAX)
		f->is_spliced = false; /* once the pipe is empty */
	return drain_pipe(l, c, flow);
}

/* What is held for the sink. 1: nothing any more; 0: wait; -errno. */
static int flush(struct loop *l, struct conn *c, unsigned int flow)
{
	struct conn_flow *f = &c->flows[flow];
	int err;

	if (f->buffer) {
		if (!conn_sink(c, flow)->is_writable)
			return 0;
		err = flush_buffer(l, c, flow);
		if (err || f->buffer)
			return err;
	}
	if (f->pipe && f->pipe->bytes) {
		if (!conn_sink(c, flow)->is_writable)
			return 0;
		return drain_pipe(l, c, flow);
	}
	return 1;
}

/* One direction. 1: has more; 0: wait; -errno of the source or the sink. */
static int pump(struct loop *l, struct conn *c, unsigned int flow,
		bool *is_source)
{
	struct conn_flow *f = &c->flows[flow];
	int rounds = ROUNDS, more;

	more = flush(l, c, flow);
	if (more <= 0)
		return more;
	more = conn_source(c, flow)->is_readable && !f->is_ended;
	while (more > 0 && rounds--) {
		/* splice(2) does not go past an urgent mark */
		if (conn_source(c, flow)->is_urgent)
			f->is_spliced = false;
		if (f->pipe && !f->is_spliced)
			end_splicing(l, f);
		more = f->is_spliced ? splice_once(l, c, flow, is_source) :
				       copy_once(l, c, flow, is_source);
	}
	if (f->pipe && !f->pipe->bytes && more <= 0) {
		pipe_put(&l->pipes, f->pipe);
		f->pipe = NULL;
	}
	return more;
}

/* The source's FIN goes on behind everything that came before it. */
static int pass_end(struct conn *c, unsigned int flow)
{
	struct conn_flow *f = &c->flows[flow];

	if (!f->is_ended || f->is_shut || f->buffer || f->pipe)
		return 0;
	f->is_shut = true;
	if (c->end == END_NONE)
		c->end = flow == INBOUND ? END_CLIENT_CLOSED :
					   END_SERVER_CLOSED;
	/* the last one is sent by close() */
	if (c->flows[!flow].is_shut)
		return 0;
	return shutdown(conn_sink(c, flow)->fd, SHUT_WR) ? -errno : 0;
}

/*
 * A direction's step, and which side is lost when it fails. What a lost side
 * had sent before is still in its socket, and goes on: relay_finish().
 */
static int step(struct loop *l, struct conn *c, unsigned int flow)
{
	bool is_source = false;
	unsigned int lost;
	int more = pump(l, c, flow, &is_source);

	if (!more)
		more = pass_end(c, flow);
	if (more < 0) {
		lost = is_source == (flow == INBOUND) ? CLIENT : SERVER;
		c->end = lost == CLIENT ? END_CLIENT_RESET : END_SERVER_RESET;
	}
	return more;
}

enum relay_result relay_pump(struct loop *l, struct conn *c)
{
	int in, out;

	in = step(l, c, INBOUND);
	if (in < 0)
		return RELAY_RESET;
	out = step(l, c, OUTBOUND);
	if (out < 0)
		return RELAY_RESET;
	count_engine(l, c);
	if (c->flows[INBOUND].is_shut && c->flows[OUTBOUND].is_shut)
		return RELAY_DONE;
	return in || out ? RELAY_AGAIN : RELAY_WAIT;
}

bool relay_finish(struct loop *l, struct conn *c)
{
	unsigned int flow = c->end == END_CLIENT_RESET ? INBOUND : OUTBOUND;
	struct conn_flow *f = &c->flows[flow];
	bool is_source = false;
	int more, queued = 0;

	conn_source(c, flow)->is_readable = true;
	more = pump(l, c, flow, &is_source);
	if (more > 0)
		return false;
	if (more < 0 && !is_source)
		return true;
	if (f->buffer || (f->pipe && f->pipe->bytes))
		return false;
	return ioctl(conn_sink(c, flow)->fd, SIOCOUTQ, &queued) || !queued;
}
