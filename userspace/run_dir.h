/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directory: one daemon's own, by a lock that dies with it. */
#ifndef HEADGATE_RUN_DIR_H
#define HEADGATE_RUN_DIR_H

#include <limits.h>
#include <sys/types.h>

#include "outcome.h"

struct run_dir {
	int lock_fd;
	char control[PATH_MAX]; /* the socket's path */
	char staging[PATH_MAX]; /* an empty directory */
};

/*
 * Makes it if need be. It has group `gid` and mode 0750 then, unless it was
 * there before and others may enter it anyway. -EBUSY: another daemon has it.
 * -errno with `o` filled.
 */
int run_dir_open(struct run_dir *d, const char *path, gid_t gid,
		 struct outcome *o);

/* Before each start of a router: somebody may have tidied up. */
int run_dir_make_staging(const struct run_dir *d, struct outcome *o);
void run_dir_close(struct run_dir *d);

#endif
