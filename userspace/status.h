/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON of `headgate status`; its keys are for ever. */
#ifndef HEADGATE_STATUS_H
#define HEADGATE_STATUS_H

#include "snapshot.h"
#include "stats.h"

/* What the snapshot and the counters do not tell. */
struct status_facts {
	const char *config_path;
	unsigned int generation, router_restarts, nr_workers;
	unsigned int nr_connections_max; /* what descriptors allow */
	bool is_draining;
};

/* One line with its newline, from malloc; NULL: out of memory. */
char *status_json(const struct status_facts *facts,
		  const struct snapshot *snapshot, const struct stats *stats);

#endif
