/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the control thread turn on: an epoll instance of their
 * own with a timer wheel behind a timerfd in it. The thread watches the epoll
 * instance for EPOLLIN; inside, the timerfd has data.ptr NULL.
 */
#ifndef HEADGATE_TICKER_H
#define HEADGATE_TICKER_H

#include "timer.h"

struct ticker {
	int epoll_fd, timer_fd;
	struct timer_wheel wheel;
};

/* 0 or -errno. A closed ticker may be closed again. */
int ticker_open(struct ticker *t);
void ticker_close(struct ticker *t);

/* Runs what is due. */
void ticker_expire(struct ticker *t, timer_fn *fn, void *context);

/* Call after timers were armed: sets the timerfd for the first of them. */
void ticker_wind(struct ticker *t);

#endif
