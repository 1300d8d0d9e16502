/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The supervisor's listening sockets: one a worker for each `listen` line, or
 * one for all workers when systemd holds it. A set belongs to a configuration;
 * the next set takes over the sockets of lines that did not change.
 */
#ifndef HEADGATE_LISTENER_H
#define HEADGATE_LISTENER_H

#include "config/config.h"
#include "outcome.h"

/* A line's sockets. */
struct listener_group {
	struct address address;
	unsigned int transport; /* one TRANSPORT_ bit */
	unsigned int nr_fds;	/* worker w has fds[w % nr_fds] */
	bool is_inherited;	/* systemd's: fds[0] is never closed */
	int fds[];
};

struct listener_set {
	struct listener_entry {
		unsigned int listen; /* its place among the listen lines */
		struct listener_group *group;
	} * entries;
	unsigned int nr_entries;
};

/* Sockets that systemd passed on, for as long as the process lives. */
struct listener_inherited {
	struct inherited_socket {
		int fd;
		struct address address; /* [::] without v6only: AF_UNSPEC */
	} * sockets;
	unsigned int nr_sockets;
};

/* sd_listen_fds(3). 0 or -errno. */
int listener_inherit(struct listener_inherited *in);
/* One warning for each socket that no listen line uses. */
void listener_warn_unused(const struct listener_inherited *in,
			  const struct listener_set *set, struct outcome *o);

/*
 * The sockets for `c`: those of `old` that it still names, and new ones,
 * bound and listening. On failure nothing new is left open and `o` says why.
 */
int listener_set_build(struct listener_set *set, const struct config *c,
		       const struct listener_set *old,
		       const struct listener_inherited *in,
		       unsigned int nr_workers, struct outcome *o);

bool listener_set_has(const struct listener_set *set,
		      const struct listener_group *g);

/* Closes and frees what `keep` (which may be NULL) does not have. */
void listener_set_close(struct listener_set *set,
			const struct listener_set *keep);

#endif
