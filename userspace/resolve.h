/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of servers, by c-ares: A and AAAA, asked again when their TTL ends
 * (between 1 s and 1 h; after a failure between 1 s and 30 s, with the last
 * good answer kept). /etc/hosts counts. Runs in the control thread.
 */
#ifndef HEADGATE_RESOLVE_H
#define HEADGATE_RESOLVE_H

#include "backend.h"

struct resolver;

/*
 * Called for an answer that differs, for the first failure of a run (`error`
 * is set, there are no addresses), and for the answer that ends it. The pools
 * have the answer by then, so this is the time for health_watch(). It must
 * not call back into the resolver.
 */
typedef void resolve_report_fn(void *context, const char *host,
			       const struct address *addresses, size_t nr,
			       const char *error);

/* NULL: c-ares could not start. Reads resolv.conf here, and not later. */
struct resolver *resolve_new(resolve_report_fn *report, void *context);
void resolve_free(struct resolver *r);

/* Ask these instead: "192.0.2.53,[2001:db8::53]:5353". 0 or -EINVAL. */
int resolve_set_servers(struct resolver *r, const char *servers);

/* As health_fd() and health_turn(). */
int resolve_fd(const struct resolver *r);
void resolve_turn(struct resolver *r);

/*
 * Resolve the names of these backends from now on (NULL: of none), known
 * answers at once. Call it before the set that was watched is freed; best
 * before the new one is in force. 0 or -ENOMEM.
 */
int resolve_watch(struct resolver *r, struct backend_set *set);

#endif
