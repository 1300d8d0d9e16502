/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One worker's listening sockets: followed over reloads, rested when the
 * process is out of descriptors, left when they or the worker go.
 */
#ifndef HEADGATE_ACCEPTOR_H
#define HEADGATE_ACCEPTOR_H

#include "loop.h"

struct watched;

struct acceptor {
	struct watched *watched;
	unsigned int nr_watched;
	uint64_t seen;	/* generation that `watched` was made from */
	int reserve_fd; /* given up to refuse what can not be accepted */
	uint64_t again_ms; /* 0: not resting */
	uint64_t said_s;   /* when the log was told last */
};

/* 0 or -errno. `spare_fd`: any descriptor, of which copies are held. */
int acceptor_open(struct acceptor *a, int spare_fd);
void acceptor_close(struct acceptor *a);

/*
 * Once a turn: follows the loop's snapshot, and ends a rest. `spare_fd` as
 * above.
 */
void acceptor_turn(struct acceptor *a, struct loop *l, int spare_fd);

/* How long the loop may sleep; -1: for ever. */
int acceptor_wait_ms(const struct acceptor *a);

/* Epoll's 64 bits of a listening socket, and what to do on its event. */
bool acceptor_owns(uint64_t tag);
void acceptor_event(struct acceptor *a, struct loop *l, uint64_t tag,
		    int spare_fd);

/* The drain: what the kernel has queued is still served; then all close. */
void acceptor_leave_all(struct acceptor *a, struct loop *l);

#endif
