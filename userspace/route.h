/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The route table: (name, ALPN, transport) to target. One look-up hashes each
 * suffix of the name once, whatever the number of routes.
 */
#ifndef HEADGATE_ROUTE_H
#define HEADGATE_ROUTE_H

#include "config/config.h"
#include "span.h"

/* What won: points into the configuration that the table was built from. */
struct route {
	const struct config_route *line;
	const char *pattern; /* "a.b", "*.b" or "*" */
	const char *alpn;    /* NULL: any */
	unsigned int transports;
	struct config_target target;
};

struct route_table;

/* NULL: out of memory. The configuration must outlive the table. */
struct route_table *route_table_new(const struct config *c);
void route_table_free(struct route_table *t);

/*
 * `name`: lower case, no final dot; empty for a client that sent none (only
 * the pattern "*" serves it). `alpn`: a checked ProtocolNameList, in the
 * client's order. `transport`: one TRANSPORT_ bit. NULL: the default decides.
 */
const struct route *route_find(const struct route_table *t, struct span name,
			       struct span alpn, unsigned int transport);

#endif
