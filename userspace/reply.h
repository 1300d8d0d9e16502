/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers to clients of the control socket. Each is written as far as its
 * reader takes it and never blocks anybody; a reader that does not take it
 * within five seconds is closed.
 */
#ifndef HEADGATE_REPLY_H
#define HEADGATE_REPLY_H

#include <stddef.h>
#include <stdint.h>

#define REPLY_MAX 16 /* at a time; one more takes the slowest one's place */

struct reply_queue {
	int epoll_fd, timer_fd;
	unsigned int nr_replies;
	struct reply {
		int fd; /* -1: a free place */
		char *text;
		size_t len, done;
		uint64_t deadline_ms;
	} replies[REPLY_MAX];
};

/* 0 or -errno. */
int reply_queue_open(struct reply_queue *q);
void reply_queue_close(struct reply_queue *q);

/* Watch reply_queue_fd() for EPOLLIN, then let the queue take its turn. */
int reply_queue_fd(const struct reply_queue *q);
void reply_queue_turn(struct reply_queue *q);

/* Takes over `fd` and `text` (from malloc; NULL only closes `fd`). */
void reply_send(struct reply_queue *q, int fd, char *text);

#endif
