// SPDX-License-Identifier: GPL-2.0-or-later
#include "reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"

#define PATIENCE_MS 5000
#define TICK_MS	    250
/* When all places are taken, a reader that is so slow is worth this. */
#define EVICT_MS 250

int reply_queue_open(struct reply_queue *q)
{
	struct epoll_event e = { .events = EPOLLIN };
	unsigned int i;

	*q = (struct reply_queue){ .epoll_fd = -1, .timer_fd = -1 };
	for (i = 0; i < REPLY_MAX; i++)
		q->replies[i].fd = -1;
	q->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	q->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (q->epoll_fd >= 0 && q->timer_fd >= 0 &&
	    !epoll_ctl(q->epoll_fd, EPOLL_CTL_ADD, q->timer_fd, &e))
		return 0;

	int err = -errno;

	reply_queue_close(q);
	return err;
}

static void end(struct reply_queue *q, struct reply *r)
{
	close(r->fd);
	free(r->text);
	*r = (struct reply){ .fd = -1 };
	q->nr_replies--;
}

void reply_queue_close(struct reply_queue *q)
{
	unsigned int i;

	for (i = 0; i < REPLY_MAX; i++)
		if (q->replies[i].fd >= 0)
			end(q, &q->replies[i]);
	if (q->timer_fd >= 0)
		close(q->timer_fd);
	if (q->epoll_fd >= 0)
		close(q->epoll_fd);
	q->timer_fd = q->epoll_fd = -1;
}

int reply_queue_fd(const struct reply_queue *q)
{
	return q->epoll_fd;
}

/* The timer ticks only while somebody is slow. */
static void set_timer(struct reply_queue *q)
{
	struct itimerspec t = { 0 };

	if (q->nr_replies)
		t.it_value.tv_nsec = t.it_interval.tv_nsec = TICK_MS * 1000000;
	timerfd_settime(q->timer_fd, 0, &t, NULL);
}

/* false: it is over, for better or worse. */
static bool continues(struct reply *r)
{
	while (r->done < r->len) {
		ssize_t n = send(r->fd, r->text + r->done, r->len - r->done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		r->done += (size_t)n;
	}
	return false;
}

/* A free place; if need be, that of the reader that is slow for longest. */
static struct reply *find_place(struct reply_queue *q)
{
	struct reply *oldest = &q->replies[0];
	unsigned int i;

	for (i = 0; i < REPLY_MAX; i++) {
		if (q->replies[i].fd < 0)
			return &q->replies[i];
		if (q->replies[i].deadline_ms < oldest->deadline_ms)
			oldest = &q->replies[i];
	}
	if (oldest->deadline_ms + EVICT_MS > clock_ms() + PATIENCE_MS)
		return NULL;
	end(q, oldest);
	return oldest;
}

void reply_send(struct reply_queue *q, int fd, char *text)
{
	struct reply *r = text ? find_place(q) : NULL;
	struct epoll_event e = { .events = EPOLLOUT, .data.ptr = r };

	if (!r) {
		close(fd);
		free(text);
		return;
	}
	*r = (struct reply){ .fd = fd,
			     .text = text,
			     .len = strlen(text),
			     .deadline_ms = clock_ms() + PATIENCE_MS };
	q->nr_replies++;
	if (!continues(r) || epoll_ctl(q->epoll_fd, EPOLL_CTL_ADD, fd, &e))
		end(q, r);
	set_timer(q);
}

static void end_late_ones(struct reply_queue *q)
{
	uint64_t now_ms = clock_ms(), ticks;
	unsigned int i;
	ssize_t n;

	n = read(q->timer_fd, &ticks, sizeof(ticks));
	(void)n; /* only empties */
	for (i = 0; i < REPLY_MAX; i++)
		if (q->replies[i].fd >= 0 && q->replies[i].deadline_ms < now_ms)
			end(q, &q->replies[i]);
}

void reply_queue_turn(struct reply_queue *q)
{
	struct epoll_event events[REPLY_MAX + 1];
	int i, nr = epoll_wait(q->epoll_fd, events, REPLY_MAX + 1, 0);

	for (i = 0; i < nr; i++) {
		struct reply *r = events[i].data.ptr;

		if (r && r->fd >= 0 && !continues(r))
			end(q, r);
	}
	end_late_ones(q);
	set_timer(q);
}
