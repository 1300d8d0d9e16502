/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All workers together, as the control thread commands them. */
#ifndef HEADGATE_WORKERS_H
#define HEADGATE_WORKERS_H

#include "worker.h"

struct workers {
	struct worker **all; /* NULL until workers_make() */
	unsigned int nr;
	bool have_started;
};

/* Makes `nr` of them, each with a log ring. 0 or -errno. */
int workers_make(struct workers *w, unsigned int nr,
		 unsigned int nr_connections, struct stats *stats);

/* Starts them, once; afterwards wakes them. 0 or -errno. */
int workers_run(struct workers *w);

void workers_drain(struct workers *w, uint64_t deadline_ms);
bool workers_have_ended(const struct workers *w);

/* Waits for their end. */
void workers_free(struct workers *w);

#endif
