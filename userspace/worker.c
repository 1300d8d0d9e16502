// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "grace.h"
#include "tcp.h"

enum {
	EVENTS = 256,
	BACKOFF_MS = 100, /* without descriptors there is no use in asking */
	DRAIN_LOOK_MS = 50,
	QUIET_MS = 250, /* after which the pools are given back */
};

#define TAG_WAKE 3ULL /* CONN_TAG_OTHER and the lowest bit */

/*
 * A listener that this worker takes connections from. It is left under a
 * newer configuration than the one it came with: so nothing points into that.
 */
struct watched {
	struct listener *listener;
	struct config_listen config;
	char *target; /* name of the backend, with config.has_target */
	int fd;
};

struct worker {
	struct loop loop;
	pthread_t thread;
	struct watched *watched;
	unsigned int nr_watched;
	uint64_t seen; /* generation that `watched` was made from */
	int wake_fd;
	int reserve_fd; /* given up to refuse what can not be accepted */
	uint64_t accept_again_ms; /* 0: not backing off */
	uint64_t descriptors_said_s;
	uint64_t busy_ms; /* the last turn with an event */
	_Atomic uint64_t drain_until_ms; /* 0: not draining */
	bool is_draining;
	_Atomic bool has_ended;
};

static int watch(struct worker *w, unsigned int i)
{
	struct epoll_event ev = {
		/* a socket that all workers share must not wake them all */
		.events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.u64 = (uint64_t)i << 2 | CONN_TAG_OTHER,
	};

	if (epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_ADD, w->watched[i].fd, &ev))
		return -errno;
	return 0;
}

static void unwatch(struct worker *w, unsigned int i)
{
	epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_DEL, w->watched[i].fd, NULL);
}

static void watch_all(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_watched; i++)
		watch(w, i);
}

static void unwatch_all(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_watched; i++)
		unwatch(w, i);
}

/* One connection can always be taken in to be turned away. */
static void shed(struct worker *w, const struct watched *from)
{
	struct loop *l = &w->loop;
	struct address nobody = { .family = AF_UNSPEC };
	int fd;

	if (w->reserve_fd < 0)
		return;
	close(w->reserve_fd);
	fd = accept4(from->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		conn_refuse_at_accept(l, from->listener, &nobody,
				      REASON_DESCRIPTORS);
	}
	w->reserve_fd = fcntl(w->wake_fd, F_DUPFD_CLOEXEC, 0);
}

static void back_off(struct worker *w, const struct watched *from, int err)
{
	uint64_t second = w->loop.now_ms / 1000;

	shed(w, from);
	unwatch_all(w);
	w->accept_again_ms = w->loop.now_ms + BACKOFF_MS;
	if (second == w->descriptors_said_s)
		return;
	w->descriptors_said_s = second;
	log_say(LOG_ERR, "cannot accept: %s; worker %u pauses for %d ms",
		strerror(-err), w->loop.index, BACKOFF_MS);
}

/* The reserve may have gone to another thread: without it, no accepting. */
static void accept_again(struct worker *w)
{
	if (w->reserve_fd < 0)
		w->reserve_fd = fcntl(w->wake_fd, F_DUPFD_CLOEXEC, 0);
	if (w->reserve_fd < 0) {
		w->accept_again_ms = w->loop.now_ms + BACKOFF_MS;
		return;
	}
	w->accept_again_ms = 0;
	watch_all(w);
}

static void accept_from(struct worker *w, unsigned int i)
{
	struct watched *from = &w->watched[i];
	int err = tcp_accept(&w->loop, from->listener, &from->config, from->fd);

	if (err < 0)
		back_off(w, from, err);
}

/* The backend may stand elsewhere in the present configuration, or nowhere. */
static bool has_backend(const struct worker *w, struct watched *from)
{
	int i;

	if (!from->config.has_target)
		return true;
	i = from->target ?
		    config_find_backend(w->loop.snapshot->config,
					from->target) :
		    -1;
	from->config.backend = (unsigned int)i;
	return i >= 0;
}

/* What the kernel has queued is still served; then the socket is closed. */
static void leave_listener(struct worker *w, struct watched *from)
{
	if (has_backend(w, from))
		while (tcp_accept(&w->loop, from->listener, &from->config,
				  from->fd) > 0)
			;
	close(from->fd);
	/* it may have come back by a later reload, with a new socket */
	if (from->listener->fds[w->loop.index] == from->fd)
		from->listener->fds[w->loop.index] = -1;
}

static const struct snapshot_listener *find(const struct snapshot *s,
					    const struct listener *listener)
{
	unsigned int i;

	for (i = 0; i < s->nr_listeners; i++)
		if (s->listeners[i].listener == listener)
			return &s->listeners[i];
	return NULL;
}

static bool is_kept(const struct worker *w, const struct watched *old,
		    const struct snapshot *s)
{
	const struct snapshot_listener *sl = find(s, old->listener);

	return sl && old->listener->fds[w->loop.index] == old->fd;
}

static void free_watched(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_watched; i++)
		free(w->watched[i].target);
	free(w->watched);
	w->watched = NULL;
	w->nr_watched = 0;
}

/* The listeners of `s` with a socket of ours, in its order. */
static unsigned int collect(const struct worker *w, const struct snapshot *s,
			    struct watched *out)
{
	unsigned int i, nr = 0;

	for (i = 0; i < s->nr_listeners; i++) {
		struct listener *listener = s->listeners[i].listener;
		const struct config_listen *c = s->listeners[i].config;
		int fd = w->loop.index < listener->nr_fds ?
				 listener->fds[w->loop.index] :
				 -1;

		if (listener->transport != TRANSPORT_TCP || fd < 0)
			continue;
		out[nr] = (struct watched){ .listener = listener,
					    .config = *c,
					    .fd = fd };
		if (c->has_target)
			out[nr].target =
				strdup(s->config->backends[c->backend].name);
		nr++;
	}
	return nr;
}

static void follow_listeners(struct worker *w)
{
	const struct snapshot *s = w->loop.snapshot;
	struct watched *all = calloc(s->nr_listeners + 1, sizeof(*all));
	unsigned int i;

	if (!all)
		return; /* once more in the next turn */
	/* indices change: all go, and all that stay come back */
	unwatch_all(w);
	for (i = 0; i < w->nr_watched; i++)
		if (!is_kept(w, &w->watched[i], s))
			leave_listener(w, &w->watched[i]);
	free_watched(w);
	w->watched = all;
	w->nr_watched = collect(w, s, all);
	w->seen = s->generation;
	if (!w->accept_again_ms)
		watch_all(w);
}

static void begin_drain(struct worker *w)
{
	unsigned int i;

	w->is_draining = true;
	unwatch_all(w);
	for (i = 0; i < w->nr_watched; i++)
		leave_listener(w, &w->watched[i]);
	free_watched(w);
}

static bool has_spare(const struct loop *l)
{
	return l->buffers.nr_small || l->buffers.nr_large || l->pipes.nr_idle;
}

static int at_most(int ms, int limit)
{
	return ms < 0 || ms > limit ? limit : ms;
}

static int wait_ms(const struct worker *w)
{
	const struct loop *l = &w->loop;
	int ms = timer_wait_ms(&l->timers, l->now_ms);

	if (l->ready)
		return 0;
	if (w->accept_again_ms)
		ms = at_most(ms, BACKOFF_MS);
	if (w->is_draining)
		ms = at_most(ms, DRAIN_LOOK_MS);
	if (has_spare(l))
		ms = at_most(ms, QUIET_MS);
	return ms;
}

static void dispatch(struct worker *w, const struct epoll_event *ev)
{
	uint64_t tag = ev->data.u64, count;
	ssize_t ignored;

	if (tag == TAG_WAKE) {
		ignored = read(w->wake_fd, &count, sizeof(count));
		(void)ignored;
	} else if (tag & CONN_TAG_OTHER) {
		/* the list may have become shorter within this turn */
		if (tag >> 2 < w->nr_watched && !w->accept_again_ms)
			accept_from(w, (unsigned int)(tag >> 2));
	} else {
		tcp_event(&w->loop, (void *)(uintptr_t)(tag & ~1ULL), tag & 1,
			  ev->events);
	}
}

static void look_around(struct worker *w)
{
	struct loop *l = &w->loop;
	uint64_t until = atomic_load(&w->drain_until_ms);

	l->snapshot = __atomic_load_n(&snapshot_current, __ATOMIC_ACQUIRE);
	if (until && !w->is_draining)
		begin_drain(w);
	if (l->snapshot->generation != w->seen && !w->is_draining)
		follow_listeners(w);
	if (w->accept_again_ms && l->now_ms >= w->accept_again_ms)
		accept_again(w);
	if (w->is_draining && l->now_ms >= until)
		tcp_end_all(l);
}

/* After a burst its buffers and pipes are of no use to an idle loop. */
static void trim(struct worker *w, int nr_events)
{
	struct loop *l = &w->loop;

	if (nr_events)
		w->busy_ms = l->now_ms;
	if (l->now_ms - w->busy_ms < QUIET_MS)
		return;
	buffer_pool_trim(&l->buffers);
	pipe_pool_trim(&l->pipes);
}

static bool turn(struct worker *w)
{
	struct epoll_event events[EVENTS];
	struct loop *l = &w->loop;
	int i, n;

	grace_leave();
	n = epoll_wait(l->epoll_fd, events, EVENTS, wait_ms(w));
	grace_enter();
	l->now_ms = clock_ms();
	look_around(w);
	for (i = 0; i < n; i++)
		dispatch(w, &events[i]);
	timer_expire(&l->timers, l->now_ms, tcp_timeout, l);
	tcp_run_ready(l);
	conn_recycle(l);
	trim(w, n);
	return !w->is_draining || l->live;
}

static void *run(void *arg)
{
	struct worker *w = arg;

	rcu_register_thread();
	while (turn(w))
		;
	rcu_unregister_thread();
	atomic_store(&w->has_ended, true);
	return NULL;
}

static int open_descriptors(struct worker *w)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = TAG_WAKE };

	w->loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->loop.epoll_fd < 0 || w->wake_fd < 0)
		return -errno;
	if (epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &ev))
		return -errno;
	w->reserve_fd = fcntl(w->wake_fd, F_DUPFD_CLOEXEC, 0);
	return w->reserve_fd < 0 ? -errno : 0;
}

struct worker *worker_new(const struct worker_options *o)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return NULL;
	w->loop.epoll_fd = w->wake_fd = w->reserve_fd = -1;
	w->loop.index = o->index;
	w->loop.stats = o->stats;
	w->loop.counters = &o->stats->workers[o->index];
	w->loop.log = o->log;
	w->loop.now_ms = clock_ms();
	timer_wheel_init(&w->loop.timers, w->loop.now_ms);
	if (getrandom(&w->loop.boot_id, sizeof(w->loop.boot_id), 0) < 0)
		w->loop.boot_id = w->loop.now_ms;
	err = open_descriptors(w);
	if (!err)
		err = conn_table_init(&w->loop, o->nr_connections);
	if (err) {
		worker_free(w);
		errno = -err;
		return NULL;
	}
	return w;
}

int worker_start(struct worker *w)
{
	int err = pthread_create(&w->thread, NULL, run, w);

	if (!err)
		worker_wake(w); /* to its listeners */
	return -err;
}

void worker_wake(struct worker *w)
{
	uint64_t one = 1;
	ssize_t ignored = write(w->wake_fd, &one, sizeof(one));

	(void)ignored;
}

void worker_drain(struct worker *w, uint64_t deadline_ms)
{
	atomic_store(&w->drain_until_ms, deadline_ms ? deadline_ms : 1);
	worker_wake(w);
}

bool worker_has_ended(const struct worker *w)
{
	return atomic_load(&w->has_ended);
}

void worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	close_fd(w->loop.epoll_fd);
	close_fd(w->wake_fd);
	close_fd(w->reserve_fd);
	conn_table_fini(&w->loop);
	buffer_pool_trim(&w->loop.buffers);
	pipe_pool_trim(&w->loop.pipes);
	free_watched(w);
	free(w);
}
