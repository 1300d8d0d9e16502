// SPDX-License-Identifier: GPL-2.0-or-later
#include "ticker.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"

int ticker_open(struct ticker *t)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	int err;

	timer_wheel_init(&t->wheel, clock_ms());
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	t->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (t->epoll_fd < 0 || t->timer_fd < 0)
		goto fail;
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->timer_fd, &event))
		goto fail;
	return 0;
fail:
	err = -errno;
	ticker_close(t);
	return err;
}

void ticker_close(struct ticker *t)
{
	if (t->timer_fd >= 0)
		close(t->timer_fd);
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	t->timer_fd = t->epoll_fd = -1;
}

void ticker_expire(struct ticker *t, timer_fn *fn, void *context)
{
	timer_expire(&t->wheel, clock_ms(), fn, context);
}

void ticker_wind(struct ticker *t)
{
	struct itimerspec when = { 0 };
	int wait_ms = timer_wait_ms(&t->wheel, clock_ms());

	/* zero would disarm it; setting it also takes back its readiness */
	if (wait_ms == 0)
		when.it_value.tv_nsec = 1;
	if (wait_ms > 0) {
		when.it_value.tv_sec = wait_ms / 1000;
		when.it_value.tv_nsec = wait_ms % 1000 * 1000000L;
	}
	timerfd_settime(t->timer_fd, 0, &when, NULL);
}
