/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who the router is, and what it may do: itself, and nothing. */
#ifndef HEADGATE_PRIVILEGE_H
#define HEADGATE_PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

#define PRIVILEGE_GROUPS_MAX 64

struct privilege_user {
	char name[64];
	uid_t uid;
	gid_t gid;
	gid_t groups[PRIVILEGE_GROUPS_MAX];
	int nr_groups;
	bool is_nobody; /* no user of our own: its group is everybody's */
};

/*
 * `name` or, when it is NULL, `headgate` or else `nobody`. Asks the name
 * service, so before the jail. -ENOENT: there is no such user.
 */
int privilege_find_user(const char *name, struct privilege_user *out);

/* Whether this process is able to become somebody else. */
bool privilege_may_change_user(void);

/*
 * For ever: no capability, nothing to gain by an exec, no core, no ptrace;
 * and the user, unless it is NULL. Call it before there are threads. 0 or
 * -errno, with what failed in `step`.
 */
int privilege_drop(const struct privilege_user *user, const char **step);

/* The open file limit as far up as it goes; returns it. */
unsigned int privilege_raise_descriptors(void);

#endif
