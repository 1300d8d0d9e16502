/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The router's file system: a mount namespace of its own whose root is a small
 * read-only tmpfs with copies of the resolver's files. The supervisor keeps a
 * descriptor of that namespace, and attaches the directories of unix-socket
 * backends to it, at start, at a reload, and when one was made anew.
 */
#ifndef HEADGATE_JAIL_H
#define HEADGATE_JAIL_H

#include <sys/types.h>

#include "config/config.h"
#include "outcome.h"

/*
 * In the router, while it has its capabilities; `staging` is an empty
 * directory. 0 with the namespace's descriptor in `ns_fd`; -EPERM: it may not,
 * and nothing has changed; another -errno: half-way, with what failed in
 * `step`, and the process must not go on.
 */
int jail_enter(const char *staging, int *ns_fd, const char **step);

/* The directories that should be, or are, attached to a jail. */
struct jail_dirs {
	struct jail_dir {
		char *path;
		bool is_attached, is_missing;
		dev_t dev; /* of the directory that was last tried */
		ino_t ino;
	} * dirs; /* parents before children */
	unsigned int nr_dirs;
};

/* Those of `c`; nothing attached yet, except what `old` has. */
int jail_dirs_build(struct jail_dirs *d, const struct config *c,
		    const struct jail_dirs *old);
void jail_dirs_free(struct jail_dirs *d);

/* A new router has an empty jail. */
void jail_dirs_forget(struct jail_dirs *d);

/*
 * Attaches each directory that exists and is not attached as it is now. One
 * that does not exist is a warning, once. -errno with `o` filled: failed.
 */
int jail_dirs_attach(struct jail_dirs *d, int ns_fd, struct outcome *o);

/* Detaches what `old` has attached and `d` does not name. */
void jail_dirs_detach(const struct jail_dirs *old, const struct jail_dirs *d,
		      int ns_fd);

#endif
