// SPDX-License-Identifier: GPL-2.0-or-later
#include "run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A directory that others may enter, such as /tmp, is left alone: the group
 * can enter it as well, and it is not ours alone.
 */
static bool is_private(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && !(st.st_mode & S_IRWXO);
}

/* Also when it is there: systemd makes it, with the group of root. */
static int make_run_dir(const char *path, gid_t gid)
{
	bool is_new = !mkdir(path, 0700);

	if (!is_new && errno != EEXIST)
		return -errno;
	if (!is_new && !is_private(path))
		return 0;
	/* the group first, so that no other one ever gets in */
	if (chown(path, (uid_t)-1, gid) && errno != EPERM)
		return -errno;
	return chmod(path, 0750) ? -errno : 0;
}

static int lock(struct run_dir *d, const char *path, struct outcome *o)
{
	char name[PATH_MAX], owner[24] = "";
	int err;

	snprintf(name, sizeof(name), "%s/lock", path);
	d->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (d->lock_fd < 0) {
		err = -errno;
		return outcome_fail(o, err, "%s: %s", name, strerror(-err));
	}
	if (!flock(d->lock_fd, LOCK_EX | LOCK_NB)) {
		if (!ftruncate(d->lock_fd, 0))
			dprintf(d->lock_fd, "%d\n", (int)getpid());
		return 0;
	}
	if (read(d->lock_fd, owner, sizeof(owner) - 1) > 0)
		owner[strcspn(owner, "\n")] = '\0';
	/* without it run_dir_close() leaves the other one's things alone */
	close(d->lock_fd);
	d->lock_fd = -1;
	return outcome_fail(o, -EBUSY,
			    "another headgated runs in %s (process %s); "
			    "give this one its own --run-dir",
			    path, *owner ? owner : "unknown");
}

int run_dir_open(struct run_dir *d, const char *path, gid_t gid,
		 struct outcome *o)
{
	int err;

	d->lock_fd = -1;
	if (snprintf(d->control, PATH_MAX, "%s/control.sock", path) >= 108 ||
	    snprintf(d->staging, PATH_MAX, "%s/jail", path) >= 108)
		return outcome_fail(o, -ENAMETOOLONG,
				    "%s: too long for the path of a socket",
				    path);
	err = make_run_dir(path, gid);
	if (err)
		return outcome_fail(o, err, "%s: %s", path, strerror(-err));
	return lock(d, path, o);
}

int run_dir_make_staging(const struct run_dir *d, struct outcome *o)
{
	if (!mkdir(d->staging, 0700) || errno == EEXIST)
		return 0;
	return outcome_fail(o, -errno, "%s: %s", d->staging, strerror(errno));
}

void run_dir_close(struct run_dir *d)
{
	if (d->lock_fd < 0)
		return;
	/* the lock file stays: to unlink it would let two daemons in */
	rmdir(d->staging);
	close(d->lock_fd);
	d->lock_fd = -1;
}
