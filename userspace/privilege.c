// SPDX-License-Identifier: GPL-2.0-or-later
#include "privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"

#define DESCRIPTORS_WANTED 1048576

static int look_up(const char *name, struct privilege_user *out)
{
	struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (!pw)
		return -ENOENT;
	*out = (struct privilege_user){ .uid = pw->pw_uid,
					.gid = pw->pw_gid,
					.is_nobody = !strcmp(name, "nobody") };
	snprintf(out->name, sizeof(out->name), "%s", name);
	/* sockets of backends are often open to a group */
	out->nr_groups = PRIVILEGE_GROUPS_MAX;
	if (getgrouplist(name, pw->pw_gid, out->groups, &out->nr_groups) < 0)
		out->nr_groups = PRIVILEGE_GROUPS_MAX;
	return 0;
}

int privilege_find_user(const char *name, struct privilege_user *out)
{
	if (name)
		return look_up(name, out);
	if (!look_up("headgate", out))
		return 0;
	return look_up("nobody", out);
}

bool privilege_may_change_user(void)
{
	return !capng_get_caps_process() &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID) &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_SETGID);
}

static int change_user(const struct privilege_user *u, const char **step)
{
	*step = "setgroups";
	if (setgroups((size_t)u->nr_groups, u->groups))
		return -errno;
	*step = "setresgid";
	if (setresgid(u->gid, u->gid, u->gid))
		return -errno;
	*step = "setresuid";
	if (setresuid(u->uid, u->uid, u->uid))
		return -errno;
	/* what can be undone was not done */
	*step = "setresuid for ever";
	if (u->uid && !setresuid(0, 0, 0))
		return -EPERM;
	return 0;
}

/* The bounding set needs CAP_SETPCAP, so it goes first. */
static int drop_bounds(const char **step)
{
	*step = "capabilities (bounding set)";
	if (capng_get_caps_process())
		return -EPERM;
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP)) {
		log_say(LOG_WARNING, "without CAP_SETPCAP the router keeps its "
				     "capability bounding set");
		return 0;
	}
	capng_clear(CAPNG_SELECT_BOUNDS);
	return capng_apply(CAPNG_SELECT_BOUNDS) ? -EPERM : 0;
}

static int drop_capabilities(const char **step)
{
	*step = "capabilities";
	if (capng_get_caps_process())
		return -EPERM;
	capng_clear(CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT);
	if (capng_apply(CAPNG_SELECT_CAPS) || capng_apply(CAPNG_SELECT_AMBIENT))
		return -EPERM;
	return !capng_get_caps_process() &&
	       capng_have_capabilities(CAPNG_SELECT_CAPS) == CAPNG_NONE
		       ? 0
		       : -EPERM;
}

int privilege_drop(const struct privilege_user *user, const char **step)
{
	const struct rlimit no_core = { 0, 0 };
	int err = drop_bounds(step);

	if (!err && user)
		err = change_user(user, step);
	if (!err)
		err = drop_capabilities(step);
	if (err)
		return err;
	*step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	*step = "dumpable";
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	*step = "RLIMIT_CORE";
	return setrlimit(RLIMIT_CORE, &no_core) ? -errno : 0;
}

unsigned int privilege_raise_descriptors(void)
{
	struct rlimit more = { DESCRIPTORS_WANTED, DESCRIPTORS_WANTED };
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now))
		return 1024;
	if (now.rlim_max < DESCRIPTORS_WANTED &&
	    !setrlimit(RLIMIT_NOFILE, &more))
		return DESCRIPTORS_WANTED;
	now.rlim_cur = now.rlim_max;
	setrlimit(RLIMIT_NOFILE, &now);
	return now.rlim_max > UINT_MAX ? UINT_MAX : (unsigned int)now.rlim_max;
}
