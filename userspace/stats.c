// SPDX-License-Identifier: GPL-2.0-or-later
#include "stats.h"

#include <errno.h>
#include <sys/mman.h>

#include "clock.h"

static size_t size_of(unsigned int nr_workers)
{
	return sizeof(struct stats) + nr_workers * sizeof(struct stats_worker);
}

struct stats *stats_new(unsigned int nr_workers)
{
	struct stats *s;

	if (!nr_workers || nr_workers > STATS_WORKERS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	s = mmap(NULL, size_of(nr_workers), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return NULL;
	s->started_at_ms = clock_ms();
	s->nr_workers = nr_workers;
	return s;
}

void stats_free(struct stats *s)
{
	if (s)
		munmap(s, size_of(s->nr_workers));
}

static void zero(stats_counter *c)
{
	atomic_store_explicit(c, 0, memory_order_relaxed);
}

void stats_reset_gauges(struct stats *s)
{
	unsigned int i;

	atomic_store_explicit(&s->connections, 0, memory_order_relaxed);
	for (i = 0; i < s->nr_workers; i++) {
		zero(&s->workers[i].connections);
		zero(&s->workers[i].engine_rw);
		zero(&s->workers[i].engine_splice);
	}
}

uint64_t stats_sum(const struct stats *s, size_t offset)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < s->nr_workers; i++) {
		const char *block = (const char *)&s->workers[i];
		const stats_counter *c = (const void *)(block + offset);

		sum += atomic_load_explicit(c, memory_order_relaxed);
	}
	return sum;
}

const char *reason_name(enum reason r)
{
	static const char *const names[] = {
#define X(NAME, name, text) [REASON_##NAME] = #name,
		REASONS(X)
#undef X
	};

	return (unsigned int)r < NR_REASONS ? names[r] : "unknown";
}

const char *reason_text(enum reason r)
{
	static const char *const texts[] = {
#define X(NAME, name, text) [REASON_##NAME] = text,
		REASONS(X)
#undef X
	};

	return (unsigned int)r < NR_REASONS ? texts[r] : "of a bug";
}
