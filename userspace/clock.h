/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control plane's clock; the paths of bytes have a sampled one. */
#ifndef HEADGATE_CLOCK_H
#define HEADGATE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC, in microseconds. */
static inline uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline uint64_t clock_ms(void)
{
	return clock_us() / 1000;
}

#endif
