/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coarse timers of one worker: a wheel of lists. A deadline that moves later
 * costs one store; the timer is put where it belongs when its slot comes up.
 */
#ifndef HEADGATE_TIMER_H
#define HEADGATE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_TICK_MS 32
#define TIMER_SLOTS   1024

struct timer {
	struct timer *next, **pprev; /* pprev is NULL when not armed */
	uint64_t deadline_ms;
	uint64_t tick; /* of the slot that it hangs in */
};

struct timer_wheel {
	struct timer *slots[TIMER_SLOTS];
	uint64_t occupied[TIMER_SLOTS / 64];
	uint64_t tick; /* all slots up to this one were looked at */
};

void timer_wheel_init(struct timer_wheel *w, uint64_t now_ms);

/* Arms, or moves. It fires at most a tick late and never early. */
void timer_arm(struct timer_wheel *w, struct timer *t, uint64_t deadline_ms);
void timer_cancel(struct timer_wheel *w, struct timer *t);

/* Disarms and hands over each timer that is due. `fn` may arm and cancel. */
typedef void timer_fn(void *context, struct timer *t);
void timer_expire(struct timer_wheel *w, uint64_t now_ms, timer_fn *fn,
		  void *context);

/* Milliseconds until the next occupied slot; -1: no timer is armed. */
int timer_wait_ms(const struct timer_wheel *w, uint64_t now_ms);

#endif
