/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unprivileged half: it holds descriptors only. Its main thread is the
 * control thread: messages of the supervisor, health checks, names, reloads;
 * the workers do the rest.
 */
#ifndef HEADGATE_ROUTER_H
#define HEADGATE_ROUTER_H

#include "privilege.h"
#include "stats.h"

struct router_options {
	struct stats *stats;
	unsigned int nr_workers;
	unsigned int nr_connections;	   /* in the table of each worker */
	const struct privilege_user *user; /* NULL: stay who we are */
	const char *staging;		   /* see jail_enter() */
	const char *config_path;	   /* for status */
};

/*
 * Runs until it has drained; returns the exit status of the process. `socket`
 * is the pair's other end, and the only descriptor that it needs.
 */
int router_run(const struct router_options *options, int socket);

#endif
