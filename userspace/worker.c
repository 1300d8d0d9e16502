// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "acceptor.h"
#include "clock.h"
#include "grace.h"
#include "tcp.h"

enum {
	EVENTS = 256,
	DRAIN_LOOK_MS = 50,
	QUIET_MS = 250, /* after which the pools are given back */
};

#define TAG_WAKE 3ULL /* CONN_TAG_OTHER and the lowest bit */

struct worker {
	struct loop loop;
	pthread_t thread;
	struct acceptor acceptor;
	int wake_fd;
	uint64_t busy_ms; /* the last turn with an event */
	_Atomic uint64_t drain_until_ms; /* 0: not draining */
	bool is_draining;
	_Atomic bool has_ended;
};

static void begin_drain(struct worker *w)
{
	w->is_draining = true;
	acceptor_leave_all(&w->acceptor, &w->loop);
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
	if (acceptor_wait_ms(&w->acceptor) >= 0)
		ms = at_most(ms, acceptor_wait_ms(&w->acceptor));
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
	} else if (acceptor_owns(tag)) {
		acceptor_event(&w->acceptor, &w->loop, tag, w->wake_fd);
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
	if (!w->is_draining)
		acceptor_turn(&w->acceptor, l, w->wake_fd);
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
	return acceptor_open(&w->acceptor, w->wake_fd);
}

struct worker *worker_new(const struct worker_options *o)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return NULL;
	w->loop.epoll_fd = w->wake_fd = w->acceptor.reserve_fd = -1;
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
	acceptor_close(&w->acceptor);
	conn_table_fini(&w->loop);
	buffer_pool_trim(&w->loop.buffers);
	pipe_pool_trim(&w->loop.pipes);
	free(w);
}
