// SPDX-License-Identifier: GPL-2.0-or-later
#include "acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

enum {
	REST_MS = 100, /* without descriptors there is no use in asking */
	QUEUE_MAX = 4096, /* more than a listening socket queues */
};

/*
 * A listener that connections are taken from. It is left under a newer
 * configuration than the one it came with: so nothing points into that.
 */
struct watched {
	struct listener *listener;
	struct config_listen config;
	char *target; /* name of the backend, with config.has_target */
	int fd;
};

static int watch(const struct acceptor *a, const struct loop *l, unsigned int i)
{
	struct epoll_event ev = {
		/* a socket that all workers share must not wake them all */
		.events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.u64 = (uint64_t)i << 2 | CONN_TAG_OTHER,
	};

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, a->watched[i].fd, &ev))
		return -errno;
	return 0;
}

static void unwatch_all(struct acceptor *a, const struct loop *l)
{
	unsigned int i;

	for (i = 0; i < a->nr_watched; i++)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, a->watched[i].fd, NULL);
}

static void rest(struct acceptor *a, const struct loop *l, int err)
{
	uint64_t second = l->now_ms / 1000;

	unwatch_all(a, l);
	a->again_ms = l->now_ms + REST_MS;
	if (second == a->said_s)
		return;
	a->said_s = second;
	log_say(LOG_ERR, "cannot accept: %s; worker %u pauses for %d ms",
		strerror(-err), l->index, REST_MS);
}

static void watch_all(struct acceptor *a, const struct loop *l)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < a->nr_watched && !err; i++)
		err = watch(a, l, i);
	if (err)
		rest(a, l, err);
}

/* One connection can always be taken in to be turned away. */
static void shed(struct acceptor *a, struct loop *l, const struct watched *from,
		 int spare_fd)
{
	struct address client = { .family = AF_UNSPEC };
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	int fd;

	if (a->reserve_fd < 0)
		return;
	close(a->reserve_fd);
	fd = accept4(from->fd, (void *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		address_from_sockaddr((void *)&sa, &client);
		conn_refuse_at_accept(l, from->listener, &client,
				      REASON_DESCRIPTORS);
	}
	a->reserve_fd = fcntl(spare_fd, F_DUPFD_CLOEXEC, 0);
}

/* The reserve may have gone to another thread: without it, no accepting. */
static void end_rest(struct acceptor *a, struct loop *l, int spare_fd)
{
	if (a->reserve_fd < 0)
		a->reserve_fd = fcntl(spare_fd, F_DUPFD_CLOEXEC, 0);
	if (a->reserve_fd < 0) {
		a->again_ms = l->now_ms + REST_MS;
		return;
	}
	a->again_ms = 0;
	watch_all(a, l);
}

/* The backend may stand elsewhere in the present configuration, or nowhere. */
static bool has_backend(const struct loop *l, struct watched *from)
{
	int i;

	if (!from->config.has_target)
		return true;
	i = from->target ?
		    config_find_backend(l->snapshot->config, from->target) :
		    -1;
	from->config.backend = (unsigned int)i;
	return i >= 0;
}

static void leave(struct loop *l, struct watched *from)
{
	_Atomic int *place = (_Atomic int *)&from->listener->fds[l->index];
	int left = has_backend(l, from) ? QUEUE_MAX : 0, fd = from->fd;

	while (left > 0 &&
	       tcp_accept(l, from->listener, &from->config, fd) > 0)
		left -= TCP_ACCEPTS;
	close(fd);
	/* it may have come back by a later reload, with a new socket */
	atomic_compare_exchange_strong(place, &fd, -1);
}

static bool is_kept(const struct loop *l, const struct watched *old)
{
	return snapshot_find_listen(l->snapshot, old->listener) &&
	       old->listener->fds[l->index] == old->fd;
}

/* The snapshot's listeners with a socket of ours, in its order. */
static unsigned int collect(const struct loop *l, struct watched *out)
{
	const struct snapshot *s = l->snapshot;
	unsigned int i, nr = 0;

	for (i = 0; i < s->nr_listeners; i++) {
		struct listener *listener = s->listeners[i].listener;
		const struct config_listen *c = s->listeners[i].config;
		int fd = l->index < listener->nr_fds ?
				 listener->fds[l->index] :
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

static void free_watched(struct acceptor *a)
{
	unsigned int i;

	for (i = 0; i < a->nr_watched; i++)
		free(a->watched[i].target);
	free(a->watched);
	a->watched = NULL;
	a->nr_watched = 0;
}

static void follow(struct acceptor *a, struct loop *l)
{
	struct watched *all = calloc(l->snapshot->nr_listeners + 1,
				     sizeof(*all));
	unsigned int i;

	if (!all)
		return; /* once more in the next turn */
	/* indices change: all go, and all that stay come back */
	unwatch_all(a, l);
	for (i = 0; i < a->nr_watched; i++)
		if (!is_kept(l, &a->watched[i]))
			leave(l, &a->watched[i]);
	free_watched(a);
	a->watched = all;
	a->nr_watched = collect(l, all);
	a->seen = l->snapshot->generation;
	if (!a->again_ms)
		watch_all(a, l);
}

int acceptor_open(struct acceptor *a, int spare_fd)
{
	a->reserve_fd = fcntl(spare_fd, F_DUPFD_CLOEXEC, 0);
	return a->reserve_fd < 0 ? -errno : 0;
}

void acceptor_close(struct acceptor *a)
{
	if (a->reserve_fd >= 0)
		close(a->reserve_fd);
	a->reserve_fd = -1;
	free_watched(a);
}

void acceptor_turn(struct acceptor *a, struct loop *l, int spare_fd)
{
	if (l->snapshot->generation != a->seen)
		follow(a, l);
	if (a->again_ms && l->now_ms >= a->again_ms)
		end_rest(a, l, spare_fd);
}

int acceptor_wait_ms(const struct acceptor *a)
{
	return a->again_ms ? REST_MS : -1;
}

bool acceptor_owns(uint64_t tag)
{
	return (tag & 3) == CONN_TAG_OTHER;
}

void acceptor_event(struct acceptor *a, struct loop *l, uint64_t tag,
		    int spare_fd)
{
	const struct watched *from;
	int err;

	/* the list may have changed within this turn */
	if (tag >> 2 >= a->nr_watched || a->again_ms)
		return;
	from = &a->watched[tag >> 2];
	err = tcp_accept(l, from->listener, &from->config, from->fd);
	if (err >= 0)
		return;
	pipe_pool_trim(&l->pipes); /* their descriptors are worth more now */
	shed(a, l, from, spare_fd);
	rest(a, l, err);
}

void acceptor_leave_all(struct acceptor *a, struct loop *l)
{
	unsigned int i;

	unwatch_all(a, l);
	for (i = 0; i < a->nr_watched; i++)
		leave(l, &a->watched[i]);
	free_watched(a);
}
