/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is in force: a configuration, its sockets, and the router that works by
 * them. All of it changes together, or not at all.
 */
#ifndef HEADGATE_DEPLOYMENT_H
#define HEADGATE_DEPLOYMENT_H

#include "child.h"
#include "jail.h"

struct deployment {
	const char *config_path;
	struct config *config;
	unsigned int generation; /* of the configuration, from 1 */
	struct listener_inherited inherited;
	struct listener_set listeners;
	struct jail_dirs dirs;
	struct privilege_user user;
	struct router_options router;
	struct child child;
	unsigned int restarts; /* of the router */
};

/* Takes over `c`, finds the user and reserves what lives as long as we do. */
int deployment_init(struct deployment *d, const char *config_path,
		    struct config *c, struct outcome *o);

/* Binds all sockets. `staging`: see jail_enter(). */
int deployment_listen(struct deployment *d, struct outcome *o);

/*
 * Starts a router and puts the configuration into force in it. When it fails
 * there may be a child left, which was killed and waits to be reaped.
 */
int deployment_start_router(struct deployment *d, struct outcome *o);

/* Reads the file again. When it fails, what was in force still is. */
int deployment_reload(struct deployment *d, struct outcome *o);

/* Directories of unix sockets come and go with their services. */
void deployment_follow_dirs(struct deployment *d);

/* The supervisor's copies, which keep the sockets listening. */
void deployment_stop_listening(struct deployment *d);
void deployment_fini(struct deployment *d);

#endif
