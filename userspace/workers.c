// SPDX-License-Identifier: GPL-2.0-or-later
#include "workers.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_RING_SIZE (256 * 1024)

int workers_make(struct workers *w, unsigned int nr,
		 unsigned int nr_connections, struct stats *stats)
{
	struct worker_options o = { .nr_workers = nr,
				    .nr_connections = nr_connections,
				    .stats = stats };

	w->all = calloc(nr, sizeof(*w->all));
	if (!w->all)
		return -ENOMEM;
	for (w->nr = 0; w->nr < nr; w->nr++) {
		o.index = w->nr;
		o.log = log_ring_new(LOG_RING_SIZE);
		if (!o.log)
			return -ENOMEM;
		w->all[w->nr] = worker_new(&o);
		if (!w->all[w->nr])
			return -errno;
	}
	return 0;
}

int workers_run(struct workers *w)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < w->nr && !err; i++) {
		if (w->have_started)
			worker_wake(w->all[i]);
		else
			err = worker_start(w->all[i]);
	}
	w->have_started = !err;
	return err;
}

void workers_drain(struct workers *w, uint64_t deadline_ms)
{
	unsigned int i;

	for (i = 0; w->have_started && i < w->nr; i++)
		worker_drain(w->all[i], deadline_ms);
}

bool workers_have_ended(const struct workers *w)
{
	unsigned int i;

	for (i = 0; w->have_started && i < w->nr; i++)
		if (!worker_has_ended(w->all[i]))
			return false;
	return true;
}

void workers_free(struct workers *w)
{
	unsigned int i;

	for (i = 0; i < w->nr; i++) {
		if (w->have_started)
			worker_join(w->all[i]);
		worker_free(w->all[i]);
	}
	free(w->all);
	*w = (struct workers){ 0 };
}
