/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The next snapshot, while the supervisor hands over what it is made of: the
 * text of the configuration and the sockets that are new.
 */
#ifndef HEADGATE_STAGING_H
#define HEADGATE_STAGING_H

#include "message.h"
#include "snapshot.h"

struct staging {
	unsigned int nr_workers, nr_connections_max;
	unsigned int generation; /* as the supervisor counts */
	struct config *config;
	int *fds; /* [listen line][worker], -1 where none came */
	unsigned int nr_fds;
	struct snapshot *snapshot; /* once it is built */
	char error[400];	   /* the first one; told at the end */
};

/* Forgets what is there and begins with the text in `fd`, which it closes. */
void staging_begin(struct staging *s, const struct message *m, int fd);

/* Takes over the socket. */
void staging_take_listener(struct staging *s, const struct message *m, int fd);

/*
 * Builds the snapshot; its listeners are those of snapshot_current where the
 * address is the same. 0, or -errno with s->error filled.
 */
int staging_build(struct staging *s);

/* The snapshot is the caller's now, to be in force. */
struct snapshot *staging_take(struct staging *s);

/* Closes and frees whatever is not in force. */
void staging_clear(struct staging *s);

#endif
