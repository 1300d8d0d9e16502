// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The floor: accept, connect, copy, and nothing else. It parses nothing, has
 * one backend, no timeouts, no limits and no counters, so what it costs is
 * what a proxy in userspace cannot do without.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "net.h"
#include "wire.h"

#define SCRATCH (64 * 1024)
#define PIPE	(256 * 1024)

/* One half of a connection, and the bytes on their way out of it. */
struct side {
	int fd;
	bool has_ended; /* its FIN has been passed on */
	bool is_full;	/* what came from it does not fit into the peer */
	struct side *peer;
	uint8_t *kept; /* the rest of a short send */
	size_t kept_len;
	int pipe[2];
	size_t piped;
};

struct pair {
	struct side client, server;
	struct pair *next_dead;
};

struct worker {
	int ep, listener;
	uint8_t scratch[SCRATCH];
	struct pair *dead; /* freed after the batch of events */
};

static struct sockaddr_in listen_on, connect_to;
static bool may_splice;

static struct pair *pair_of(struct side *s)
{
	struct side *client = s < s->peer ? s : s->peer;

	return (struct pair *)((char *)client - offsetof(struct pair, client));
}

static void side_close(struct side *s)
{
	close(s->fd);
	s->fd = -1;
	free(s->kept);
	if (s->pipe[1]) {
		close(s->pipe[0]);
		close(s->pipe[1]);
	}
}

static void pair_close(struct worker *w, struct side *s)
{
	struct pair *p = pair_of(s);

	if (s->fd < 0)
		return;
	side_close(&p->client);
	side_close(&p->server);
	p->next_dead = w->dead;
	w->dead = p;
}

/* Returns false when the pair is gone. */
static bool pass_end(struct worker *w, struct side *s)
{
	s->has_ended = true;
	if (s->peer->has_ended) {
		pair_close(w, s);
		return false;
	}
	shutdown(s->peer->fd, SHUT_WR);
	return true;
}

/* Copies until the source is dry (-1), full (0) or at its end (1). */
static int copy(struct worker *w, struct side *s, bool may_end)
{
	ssize_t n, m;

	if (s->kept_len) {
		m = send(s->peer->fd, s->kept, s->kept_len, MSG_NOSIGNAL);
		if (m < 0)
			return errno == EAGAIN ? 0 : 1;
		s->kept_len -= (size_t)m;
		memmove(s->kept, s->kept + m, s->kept_len);
		if (s->kept_len)
			return 0;
	}
	do {
		n = recv(s->fd, w->scratch, SCRATCH, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? -1 : 1;
		m = send(s->peer->fd, w->scratch, (size_t)n, MSG_NOSIGNAL);
		if (m < 0 && errno != EAGAIN)
			return 1;
		if (m < n) {
			m = m < 0 ? 0 : m;
			if (!s->kept)
				s->kept = malloc(SCRATCH);
			if (!s->kept)
				die("bare: out of memory");
			s->kept_len = (size_t)(n - m);
			memcpy(s->kept, w->scratch + m, s->kept_len);
			return 0;
		}
	} while (n == SCRATCH || may_end);
	return -1;
}

/* The same through a pipe. */
static int move(struct side *s)
{
	const unsigned int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
	ssize_t n;

	if (!s->pipe[1]) {
		if (pipe2(s->pipe, O_NONBLOCK))
			die("bare: pipe: %s", strerror(errno));
		fcntl(s->pipe[1], F_SETPIPE_SZ, PIPE);
	}
	for (;;) {
		while (s->piped) {
			n = splice(s->pipe[0], NULL, s->peer->fd, NULL,
				   s->piped, flags);
			if (n < 0)
				return errno == EAGAIN ? 0 : 1;
			s->piped -= (size_t)n;
		}
		n = splice(s->fd, NULL, s->pipe[1], NULL, PIPE, flags);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? -1 : 1;
		s->piped = (size_t)n;
	}
}

/* Returns false when the pair is gone. */
static bool pump(struct worker *w, struct side *s, bool may_end)
{
	int how;

	if (s->has_ended)
		return true;
	how = may_splice ? move(s) : copy(w, s, may_end);
	s->is_full = how == 0;
	return how != 1 || pass_end(w, s);
}

/* Edge-triggered: each edge is answered until the source is dry. */
static void on_event(struct worker *w, struct side *s, uint32_t events)
{
	const uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

	if (s->fd < 0)
		return;
	if (events & EPOLLERR) {
		pair_close(w, s);
		return;
	}
	if (events & EPOLLOUT && s->peer->is_full && !pump(w, s->peer, true))
		return;
	if (events & (EPOLLIN | ends) && !s->is_full)
		pump(w, s, events & ends);
}

static void accept_all(struct worker *w)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	int fd;

	while ((fd = accept4(w->listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct pair *p = calloc(1, sizeof(*p));

		if (!p)
			die("bare: out of memory");
		net_nodelay(fd);
		p->client = (struct side){ .fd = fd, .peer = &p->server };
		p->server = (struct side){ .fd = net_connect(&connect_to),
					   .peer = &p->client };
		net_watch(w->ep, EPOLL_CTL_ADD, p->server.fd, events,
			  &p->server);
		net_watch(w->ep, EPOLL_CTL_ADD, fd, events, &p->client);
	}
}

static void free_dead(struct worker *w)
{
	while (w->dead) {
		struct pair *p = w->dead;

		w->dead = p->next_dead;
		free(p);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct epoll_event events[64];

	for (;;) {
		int n = epoll_wait(w->ep, events, 64, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				on_event(w, events[i].data.ptr,
					 events[i].events);
			else
				accept_all(w);
		}
		free_dead(w);
	}
	return NULL;
}

static struct worker *worker_new(void)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		die("bare: out of memory");
	w->ep = epoll_create1(0);
	w->listener = net_listen(&listen_on);
	net_watch(w->ep, EPOLL_CTL_ADD, w->listener, EPOLLIN, NULL);
	return w;
}

int main(int argc, char **argv)
{
	int workers;
	pthread_t thread;

	if (argc == 5 && !strcmp(argv[4], "--splice"))
		may_splice = true;
	else if (argc != 4)
		die("usage: bare LISTEN CONNECT WORKERS [--splice]");
	net_raise_descriptors();
	listen_on = net_address(argv[1]);
	connect_to = net_address(argv[2]);
	workers = atoi(argv[3]);
	for (int i = 1; i < workers; i++)
		if (pthread_create(&thread, NULL, work, worker_new()))
			die("bare: pthread_create: %s", strerror(errno));
	work(worker_new());
}
