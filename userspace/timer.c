// SPDX-License-Identifier: GPL-2.0-or-later
#include "timer.h"

#include <stddef.h>
#include <string.h>

void timer_wheel_init(struct timer_wheel *w, uint64_t now_ms)
{
	memset(w, 0, sizeof(*w));
	w->tick = now_ms / TIMER_TICK_MS;
}

static void link_timer(struct timer_wheel *w, struct timer *t)
{
	/* rounded up, so that a slot's timers are due when it comes up */
	uint64_t tick = (t->deadline_ms + TIMER_TICK_MS - 1) / TIMER_TICK_MS;
	unsigned int slot;

	if (tick <= w->tick)
		tick = w->tick + 1;
	if (tick > w->tick + TIMER_SLOTS - 1)
		tick = w->tick + TIMER_SLOTS - 1;
	t->tick = tick;
	slot = tick % TIMER_SLOTS;
	t->next = w->slots[slot];
	t->pprev = &w->slots[slot];
	if (t->next)
		t->next->pprev = &t->next;
	w->slots[slot] = t;
	w->occupied[slot / 64] |= 1ULL << slot % 64;
}

void timer_cancel(struct timer_wheel *w, struct timer *t)
{
	unsigned int slot = t->tick % TIMER_SLOTS;

	if (!t->pprev)
		return;
	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	t->pprev = NULL;
	if (!w->slots[slot])
		w->occupied[slot / 64] &= ~(1ULL << slot % 64);
}

void timer_arm(struct timer_wheel *w, struct timer *t, uint64_t deadline_ms)
{
	t->deadline_ms = deadline_ms;
	if (t->pprev) {
		if (deadline_ms >= t->tick * TIMER_TICK_MS)
			return;
		timer_cancel(w, t);
	}
	link_timer(w, t);
}

static void expire_slot(struct timer_wheel *w, uint64_t now_ms, timer_fn *fn,
			void *context)
{
	unsigned int slot = w->tick % TIMER_SLOTS;
	struct timer *due = w->slots[slot], *t;

	/* a list of its own, since `fn` may arm into this very slot */
	w->slots[slot] = NULL;
	w->occupied[slot / 64] &= ~(1ULL << slot % 64);
	if (due)
		due->pprev = &due;
	while (due) {
		t = due;
		due = t->next;
		if (due)
			due->pprev = &due;
		t->pprev = NULL;
		if (t->deadline_ms > now_ms)
			link_timer(w, t);
		else
			fn(context, t);
	}
}

void timer_expire(struct timer_wheel *w, uint64_t now_ms, timer_fn *fn,
		  void *context)
{
	uint64_t end = now_ms / TIMER_TICK_MS;

	/* after a long sleep one turn of the wheel sees every slot */
	if (end > w->tick + TIMER_SLOTS)
		w->tick = end - TIMER_SLOTS;
	while (w->tick < end) {
		w->tick++;
		if (w->slots[w->tick % TIMER_SLOTS])
			expire_slot(w, now_ms, fn, context);
	}
}

/* How many slots after `slot` the next occupied one comes; 0: none is. */
static unsigned int distance(const struct timer_wheel *w, unsigned int slot)
{
	unsigned int d = 1;

	while (d < TIMER_SLOTS) {
		unsigned int at = (slot + d) % TIMER_SLOTS;
		uint64_t word = w->occupied[at / 64] >> at % 64;

		if (word)
			return d + (unsigned int)__builtin_ctzll(word);
		d += 64 - at % 64;
	}
	return 0;
}

int timer_wait_ms(const struct timer_wheel *w, uint64_t now_ms)
{
	unsigned int d = distance(w, (unsigned int)(w->tick % TIMER_SLOTS));
	uint64_t at = (w->tick + d) * TIMER_TICK_MS;

	if (!d)
		return -1;
	return at > now_ms ? (int)(at - now_ms) : 0;
}
