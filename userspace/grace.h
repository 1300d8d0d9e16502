/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Grace periods: liburcu's quiescent-state flavour, with the one thing that
 * ThreadSanitizer has to be told, since it does not see liburcu's barriers:
 * what a reader did before its quiescent state happened before the end of the
 * grace period. In every other build these are the bare calls.
 */
#ifndef HEADGATE_GRACE_H
#define HEADGATE_GRACE_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GRACE_HAS_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define GRACE_HAS_TSAN 1
#endif

#ifdef GRACE_HAS_TSAN
#undef _LGPL_SOURCE /* what is not inlined is not accused either */
#include <sanitizer/tsan_interface.h>
#define grace_release() __tsan_release((void *)&urcu_qsbr_flavor)
#define grace_acquire() __tsan_acquire((void *)&urcu_qsbr_flavor)
#else
#define grace_release() ((void)0)
#define grace_acquire() ((void)0)
#endif
#include <urcu-qsbr.h>

/* Waits until every reader has passed a quiescent state; not for readers. */
static inline void grace_wait(void)
{
	synchronize_rcu();
	grace_acquire();
}

/* A reader holds nothing right now: once per turn of its loop. */
static inline void grace_pass(void)
{
	grace_release();
	rcu_quiescent_state();
}

/* A reader is about to sleep, and holds nothing until it is back. */
static inline void grace_leave(void)
{
	grace_release();
	rcu_thread_offline();
}

static inline void grace_enter(void)
{
	rcu_thread_online();
}

#endif
