// SPDX-License-Identifier: GPL-2.0-or-later
#include "conn.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_MS 1000

int conn_table_init(struct loop *l, unsigned int nr)
{
	void *p = mmap(NULL, nr * sizeof(struct conn), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	l->conns = p;
	l->nr_conns = nr;
	return 0;
}

void conn_table_fini(struct loop *l)
{
	if (l->conns)
		munmap(l->conns, l->nr_conns * sizeof(struct conn));
	l->conns = NULL;
}

static void link_live(struct loop *l, struct conn *c)
{
	c->next = l->live;
	c->pprev = &l->live;
	if (c->next)
		c->next->pprev = &c->next;
	l->live = c;
}

static void unlink_live(struct conn *c)
{
	*c->pprev = c->next;
	if (c->next)
		c->next->pprev = c->pprev;
}

void conn_end_opening(struct conn *c)
{
	if (!c->is_relayed)
		c->flows[OUTBOUND] = (struct conn_flow){ .bytes = 0 };
}

static struct conn *take_free(struct loop *l)
{
	struct conn *c = l->free;

	/* the last used first: its lines are warm, the rest stays untouched */
	if (c)
		l->free = c->next;
	else if (l->nr_untouched < l->nr_conns)
		c = &l->conns[l->nr_untouched++];
	return c;
}

struct conn *conn_new(struct loop *l, int fd, struct listener *listener,
		      const struct address *client)
{
	struct conn *c = take_free(l);

	if (!c)
		return NULL;
	memset(c, 0, offsetof(struct conn, alpn));
	c->phase = CONN_HELLO;
	c->sides[CLIENT].fd = fd;
	c->sides[CLIENT].is_readable = true;
	c->sides[CLIENT].is_writable = true;
	c->sides[SERVER].fd = -1;
	c->listener = listener;
	c->client = *client;
	c->accepted_ms = c->active_ms = l->now_ms;
	c->serial = l->serial++;
	link_live(l, c);
	stats_add(&l->counters->accepted, 1);
	stats_add(&l->counters->connections, 1);
	return c;
}

int conn_watch(struct loop *l, struct conn *c, unsigned int side,
	       bool and_writable)
{
	struct conn_side *s = &c->sides[side];
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET |
			  (and_writable ? EPOLLOUT : 0U),
		.data.u64 = conn_tag(c, side),
	};
	int op = s->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (s->is_watched && (s->is_watched_out || !and_writable))
		return 0;
	if (epoll_ctl(l->epoll_fd, op, s->fd, &ev))
		return -errno;
	s->is_watched = true;
	s->is_watched_out = and_writable;
	return 0;
}

void conn_write_id(const struct loop *l, const struct conn *c,
		   char out[CONN_ID_LEN + 1])
{
	snprintf(out, CONN_ID_LEN + 1, "%016llx%02x%014llx",
		 (unsigned long long)l->boot_id, l->index & 0xff,
		 (unsigned long long)c->serial & 0xffffffffffffffULL);
}

static const char *end_name(const struct conn *c)
{
	switch ((enum conn_end)c->end) {
	case END_CLIENT_CLOSED:
		return "client_closed";
	case END_SERVER_CLOSED:
		return "server_closed";
	case END_CLIENT_RESET:
		return "client_reset";
	case END_SERVER_RESET:
		return "server_reset";
	case END_IDLE:
		return "idle_timeout";
	case END_DRAINED:
		return "drain_timeout";
	case END_REFUSED:
		return reason_name((enum reason)c->reason);
	case END_NONE:
		break;
	}
	return "closed";
}

/* The pattern that won is a suffix of the name: no pointer to keep alive. */
static void log_rule(struct log_line *line, const struct conn *c)
{
	char pattern[TLS_NAME_MAX + 2] = "*";
	size_t len = (size_t)c->name_len - c->route_at;

	switch ((enum decide_rule)c->rule) {
	case RULE_NONE:
		return;
	case RULE_LISTENER:
		log_line_text(line, "route", span_of_text("listener"));
		return;
	case RULE_DEFAULT:
		log_line_text(line, "route", span_of_text("default"));
		return;
	case RULE_PLAIN:
		log_line_text(line, "route", span_of_text("default plain"));
		return;
	case RULE_ROUTE:
		break;
	}
	memcpy(pattern + !c->is_route_exact, c->name + c->route_at, len);
	log_line_text(line, "route",
		      span_of(pattern, len + !c->is_route_exact));
}

static void log_who(struct log_line *line, const struct address *client,
		    const struct listener *listener)
{
	log_line_address(line, "client", client);
	log_line_text(line, "listener", span_of_text(listener->label));
}

static void log_what(struct log_line *line, const struct conn *c)
{
	log_who(line, &c->client, c->listener);
	if (c->name_len)
		log_line_text(line, "sni", span_of(c->name, c->name_len));
	if (c->alpn_len)
		log_line_text(line, "alpn", span_of(c->alpn, c->alpn_len));
	log_rule(line, c);
}

static void write_line(struct loop *l, struct log_line *line)
{
	log_line_end(line);
	if (!log_ring_write(l->log, line))
		stats_add(&l->counters->log_lost, 1);
}

static void log_connection(struct loop *l, const struct conn *c)
{
	const struct config_log *log = &l->snapshot->config->log;
	char id[CONN_ID_LEN + 1];
	struct log_line line;

	if (!log->has_connections)
		return;
	log_line_begin(&line, log->format, LOG_INFO, "connection");
	log_what(&line, c);
	log_line_text(&line, "backend", span_of_text(c->server->backend_name));
	log_line_text(&line, "server", span_of_text(c->server->label));
	log_line_number(&line, "in", c->flows[INBOUND].bytes);
	log_line_number(&line, "out", c->flows[OUTBOUND].bytes);
	log_line_seconds(&line, "duration", l->now_ms - c->accepted_ms);
	log_line_text(&line, "engine",
		      span_of_text(c->has_spliced ? "splice" : "rw"));
	log_line_text(&line, "end", span_of_text(end_name(c)));
	if (c->has_id) {
		conn_write_id(l, c, id);
		log_line_text(&line, "id", span_of(id, CONN_ID_LEN));
	}
	write_line(l, &line);
}

/* A flood of refusals must not become a flood of lines. */
static bool may_log_refusal(struct loop *l)
{
	uint32_t rate = l->snapshot->config->log.refusals_per_sec;
	unsigned int share = rate / l->stats->nr_workers;
	uint64_t second = l->now_ms / 1000;

	if (!rate)
		return false;
	if (second != l->refusals_logged_s) {
		l->refusals_logged_s = second;
		l->nr_refusals_logged = 0;
	}
	return l->nr_refusals_logged++ < (share ? share : 1);
}

static void begin_refusal(const struct loop *l, struct log_line *line,
			  enum reason reason)
{
	log_line_begin(line, l->snapshot->config->log.format, LOG_NOTICE,
		       "refused");
	log_line_text(line, "reason", span_of_text(reason_name(reason)));
}

static void log_refusal(struct loop *l, const struct conn *c,
			enum reason reason)
{
	struct log_line line;

	begin_refusal(l, &line, reason);
	log_what(&line, c);
	write_line(l, &line);
}

void conn_log_server_failure(struct loop *l, const struct server *s, int err)
{
	struct log_line line;

	if (server_state(s, (uint32_t)l->now_ms) != SERVER_UP)
		return;
	log_line_begin(&line, l->snapshot->config->log.format, LOG_WARNING,
		       "server_failed");
	log_line_text(&line, "backend", span_of_text(s->backend_name));
	log_line_text(&line, "server", span_of_text(s->label));
	log_line_text(&line, "error", span_of_text(strerror(err)));
	write_line(l, &line);
}

static void leave_server(struct loop *l, struct conn *c)
{
	struct server *s = c->server;

	if (!s)
		return;
	if (c->is_relayed) {
		log_connection(l, c);
		stats_sub(c->is_splicing ? &l->counters->engine_splice :
					   &l->counters->engine_rw, 1);
		atomic_fetch_add_explicit(&s->bytes_in, c->flows[INBOUND].bytes,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&s->bytes_out,
					  c->flows[OUTBOUND].bytes,
					  memory_order_relaxed);
	}
	c->server = NULL;
	server_put(s);
}

static void release_bytes(struct loop *l, struct conn *c)
{
	unsigned int flow;

	conn_end_opening(c);
	for (flow = 0; flow < 2; flow++) {
		buffer_put(&l->buffers, c->flows[flow].buffer);
		pipe_put(&l->pipes, c->flows[flow].pipe);
		c->flows[flow].buffer = NULL;
		c->flows[flow].pipe = NULL;
	}
}

void conn_close(struct loop *l, struct conn *c)
{
	leave_server(l, c);
	release_bytes(l, c);
	timer_cancel(&l->timers, &c->timer);
	close(c->sides[CLIENT].fd);
	if (c->sides[SERVER].fd >= 0)
		close(c->sides[SERVER].fd);
	unlink_live(c);
	c->phase = CONN_FREE;
	c->next = l->ended;
	l->ended = c;
	stats_sub(&l->counters->connections, 1);
	atomic_fetch_sub_explicit(&l->stats->connections, 1,
				  memory_order_relaxed);
}

void conn_reset(struct loop *l, struct conn *c)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(c->sides[CLIENT].fd, SOL_SOCKET, SO_LINGER, &now,
		   sizeof(now));
	if (c->sides[SERVER].fd >= 0)
		setsockopt(c->sides[SERVER].fd, SOL_SOCKET, SO_LINGER, &now,
			   sizeof(now));
	conn_close(l, c);
}

void conn_recycle(struct loop *l)
{
	struct conn *c = l->ended, *next;

	l->ended = NULL;
	for (; c; c = next) {
		struct conn **list = c->is_ready ? &l->ended : &l->free;

		next = c->next;
		c->next = *list;
		*list = c;
	}
}

void conn_refuse(struct loop *l, struct conn *c, enum reason reason,
		 uint8_t alert)
{
	uint8_t record[TLS_ALERT_LEN];

	stats_add(&l->counters->refused[reason], 1);
	c->end = END_REFUSED;
	c->reason = (uint8_t)reason;
	if (may_log_refusal(l))
		log_refusal(l, c, reason);
	if (!alert) {
		conn_close(l, c);
		return;
	}
	/*
	 * close() with unread bytes would send a reset, and the reset may
	 * overtake the alert: so end our half first and wait for theirs.
	 */
	tls_write_alert(alert, record);
	if (send(c->sides[CLIENT].fd, record, sizeof(record),
		 MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(record) ||
	    shutdown(c->sides[CLIENT].fd, SHUT_WR) ||
	    conn_watch(l, c, CLIENT, false)) {
		conn_close(l, c);
		return;
	}
	c->phase = CONN_LINGER;
	release_bytes(l, c);
	timer_arm(&l->timers, &c->timer, l->now_ms + LINGER_MS);
}

void conn_refuse_at_accept(struct loop *l, const struct listener *listener,
			   const struct address *client, enum reason reason)
{
	struct log_line line;

	stats_add(&l->counters->refused[reason], 1);
	if (!may_log_refusal(l))
		return;
	begin_refusal(l, &line, reason);
	log_who(&line, client, listener);
	write_line(l, &line);
}
