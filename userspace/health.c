// SPDX-License-Identifier: GPL-2.0-or-later
#include "health.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "ticker.h"

/* The interval while a state is in doubt, where it is not shorter anyway. */
#define FAST_INTERVAL_MS 1000
/* Descriptors that checks may hold at a time; the others wait in a queue. */
#define UNDER_WAY_MAX 256
#define EVENTS	      64

struct health_probe {
	struct timer timer; /* first: the wheel hands it back */
	struct health_probe *next, *next_waiting;
	struct server *server; /* held */
	struct config_check config;
	uint64_t begun_ms;
	int fd;			/* -1: no connect is under way */
	unsigned int nr_streak; /* results in a row against the state */
	uint64_t watch;		/* the last health_watch() that named it */
};

struct health {
	struct ticker ticker;
	struct health_probe *probes;
	struct health_probe *waiting, **last_waiting;
	unsigned int nr_under_way;
	uint64_t watch;
	health_change_fn *change;
	void *context;
};

static uint32_t fast_interval(const struct health_probe *p)
{
	return p->config.interval_ms < FAST_INTERVAL_MS ? p->config.interval_ms
							: FAST_INTERVAL_MS;
}

static void close_probe(struct health *h, struct health_probe *p)
{
	if (p->fd < 0)
		return;
	close(p->fd);
	p->fd = -1;
	h->nr_under_way--;
}

/* A tenth of play, so that checks that fell together fall apart again. */
static void schedule(struct health *h, struct health_probe *p, uint64_t now_ms)
{
	uint32_t interval =
		p->nr_streak ? fast_interval(p) : p->config.interval_ms;
	uint64_t at = p->begun_ms + interval - interval / 20 +
		      arc4random_uniform(interval / 10 + 1);

	timer_arm(&h->ticker.wheel, &p->timer, at > now_ms ? at : now_ms + 1);
}

/* Ours, not the server's: out of descriptors, memory or ports. */
static bool is_own_shortage(const struct server *s, int error)
{
	switch (error) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EADDRNOTAVAIL:
		return true;
	case EAGAIN: /* of a unix socket: its backlog is full */
		return s->address.family != AF_UNSPEC;
	}
	return false;
}

static const char *describe(int error)
{
	if (error == EAGAIN)
		return "Backlog is full";
	return error ? strerror(error) : "Check passed";
}

static void count_result(struct health *h, struct health_probe *p, int error)
{
	struct server *s = p->server;
	bool is_down = atomic_load_explicit(&s->is_down, memory_order_relaxed);

	if (!error)
		server_mark_success(s);
	if (is_down == !!error) {
		p->nr_streak = 0;
		return;
	}
	p->nr_streak++;
	if (p->nr_streak < (is_down ? p->config.rise : p->config.fall))
		return;
	p->nr_streak = 0;
	atomic_store_explicit(&s->is_down, !is_down, memory_order_relaxed);
	h->change(h->context, s, !is_down, describe(error));
}

static void conclude(struct health *h, struct health_probe *p, int error)
{
	close_probe(h, p);
	if (!is_own_shortage(p->server, error))
		count_result(h, p, error);
	schedule(h, p, clock_ms());
}

/*
 * With quick ACKs off the last step of the handshake waits for data, and the
 * close comes before it as a reset: the server's kernel has answered, its
 * program never sees the check and logs nothing, and no TIME_WAIT is left.
 */
static void hide_from_server(int fd)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
}

/* 0: it answered at once; EINPROGRESS: wait for p->fd; else an errno. */
static int begin_connect(struct health *h, struct health_probe *p)
{
	const struct server *s = p->server;
	struct epoll_event event = { .events = EPOLLOUT, .data.ptr = p };

	p->fd = socket(s->sockaddr.sa.sa_family,
		       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return errno;
	h->nr_under_way++;
	if (s->address.family != AF_UNSPEC)
		hide_from_server(p->fd);
	if (!connect(p->fd, &s->sockaddr.sa, s->sockaddr_len))
		return 0;
	if (errno == EINPROGRESS &&
	    epoll_ctl(h->ticker.epoll_fd, EPOLL_CTL_ADD, p->fd, &event))
		return ENOMEM;
	return errno;
}

static void begin(struct health *h, struct health_probe *p)
{
	uint64_t now_ms = clock_ms();
	int error;

	p->begun_ms = now_ms;
	error = begin_connect(h, p);
	if (error != EINPROGRESS)
		conclude(h, p, error);
	else
		timer_arm(&h->ticker.wheel, &p->timer,
			  now_ms + p->config.timeout_ms);
}

static void wait_for_turn(struct health *h, struct health_probe *p)
{
	p->next_waiting = NULL;
	*h->last_waiting = p;
	h->last_waiting = &p->next_waiting;
}

static void stop_waiting(struct health *h, struct health_probe *p)
{
	struct health_probe **at = &h->waiting;

	while (*at && *at != p)
		at = &(*at)->next_waiting;
	if (!*at)
		return;
	*at = p->next_waiting;
	if (!*at)
		h->last_waiting = at;
}

static void begin_waiting(struct health *h)
{
	while (h->waiting && h->nr_under_way < UNDER_WAY_MAX) {
		struct health_probe *p = h->waiting;

		stop_waiting(h, p);
		begin(h, p);
	}
}

static void timer_due(void *context, struct timer *t)
{
	struct health_probe *p = (struct health_probe *)t;

	if (p->fd < 0)
		wait_for_turn(context, p);
	else
		conclude(context, p, ETIMEDOUT);
}

static void connect_ended(struct health *h, struct health_probe *p)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (p->fd < 0)
		return;
	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	timer_cancel(&h->ticker.wheel, &p->timer);
	conclude(h, p, error);
}

void health_turn(struct health *h)
{
	struct epoll_event events[EVENTS];
	int i, nr = epoll_wait(h->ticker.epoll_fd, events, EVENTS, 0);

	for (i = 0; i < nr; i++)
		if (events[i].data.ptr)
			connect_ended(h, events[i].data.ptr);
	ticker_expire(&h->ticker, timer_due, h);
	begin_waiting(h);
	ticker_wind(&h->ticker);
}

struct health *health_new(health_change_fn *change, void *context)
{
	struct health *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->last_waiting = &h->waiting;
	h->change = change;
	h->context = context;
	if (!ticker_open(&h->ticker))
		return h;
	free(h);
	return NULL;
}

static void probe_free(struct health *h, struct health_probe *p)
{
	timer_cancel(&h->ticker.wheel, &p->timer);
	stop_waiting(h, p);
	close_probe(h, p);
	atomic_store_explicit(&p->server->is_down, false, memory_order_relaxed);
	p->server->probe = NULL;
	server_release(p->server);
	free(p);
}

/* Those that were not named since `watch`. */
static void free_probes(struct health *h, uint64_t watch)
{
	struct health_probe **at = &h->probes, *p;

	while ((p = *at)) {
		if (p->watch >= watch) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		probe_free(h, p);
	}
}

void health_free(struct health *h)
{
	if (!h)
		return;
	free_probes(h, UINT64_MAX);
	ticker_close(&h->ticker);
	free(h);
}

int health_fd(const struct health *h)
{
	return h->ticker.epoll_fd;
}

static struct health_probe *probe_new(struct health *h, struct server *s)
{
	struct health_probe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fd = -1;
	p->server = s;
	server_hold(s);
	s->probe = p;
	p->next = h->probes;
	h->probes = p;
	return p;
}

struct watch {
	struct health *health;
	const struct config_check *config;
	int err;
};

static bool check_equal(const struct config_check *a,
			const struct config_check *b)
{
	return a->is_on == b->is_on && a->interval_ms == b->interval_ms &&
	       a->timeout_ms == b->timeout_ms && a->rise == b->rise &&
	       a->fall == b->fall;
}

static void watch_server(void *context, struct server *s)
{
	struct watch *w = context;
	struct health *h = w->health;
	struct health_probe *p = s->probe;
	uint64_t first_ms;

	if (!p)
		p = probe_new(h, s);
	if (!p) {
		w->err = -ENOMEM;
		return;
	}
	p->watch = h->watch;
	if (check_equal(&p->config, w->config))
		return;
	p->config = *w->config;
	/* new or changed: soon, but not all in one instant */
	first_ms = clock_ms() + arc4random_uniform(fast_interval(p) + 1);
	stop_waiting(h, p);
	if (p->fd < 0)
		timer_arm(&h->ticker.wheel, &p->timer, first_ms);
}

int health_watch(struct health *h, const struct backend_set *set)
{
	struct watch w = { .health = h };
	unsigned int i;

	h->watch++;
	for (i = 0; set && i < set->nr_backends; i++) {
		struct backend *b = &set->backends[i];

		w.config = &b->config->check;
		if (w.config->is_on)
			backend_for_each(b, watch_server, &w);
	}
	free_probes(h, h->watch);
	begin_waiting(h);
	ticker_wind(&h->ticker);
	return w.err;
}
