/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes between two sockets: read and write through the worker's scratch, or
 * splice(2) through a lent pipe for a direction that is busy.
 */
#ifndef HEADGATE_RELAY_H
#define HEADGATE_RELAY_H

#include "conn.h"

enum relay_result {
	RELAY_WAIT,  /* nothing more until epoll says so */
	RELAY_AGAIN, /* its share of this turn is used up */
	RELAY_DONE,  /* both directions have ended */
	RELAY_RESET, /* a side is gone; conn->end says which */
};

/* Moves what can be moved, in both directions, and passes FINs on. */
enum relay_result relay_pump(struct loop *l, struct conn *c);

/*
 * After RELAY_RESET: moves what the lost side had still sent. true once all
 * of it is with the other side's kernel, or never will be.
 */
bool relay_finish(struct loop *l, struct conn *c);

#endif
