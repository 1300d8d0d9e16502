// SPDX-License-Identifier: GPL-2.0-or-later
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

/*
 * <sys/mount.h> and <linux/mount.h> do not go together in every libc, and
 * neither has all calls in all of them: so the kernel's header and syscall().
 */
#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

#define SAFE	  (MS_NOSUID | MS_NODEV | MS_NOEXEC)
#define FILE_MAX  (4 * 1024 * 1024)
#define ROOT_SIZE "size=16m,mode=0755"

static int mount_at(const char *source, const char *target, const char *type,
		    unsigned long flags, const char *data)
{
	return syscall(SYS_mount, source, target, type, flags, data) ? -errno
								     : 0;
}

static int copy_file(const char *from, const char *to)
{
	static char buf[64 * 1024];
	size_t total = 0;
	ssize_t n = 0;
	int err = 0;
	int in = open(from, O_RDONLY | O_CLOEXEC), out;

	if (in < 0)
		return 0; /* the resolver does without it, too */
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out < 0)
		err = -errno;
	while (!err && total < FILE_MAX &&
	       (n = read(in, buf, sizeof(buf))) > 0) {
		if (write(out, buf, (size_t)n) != n)
			err = -EIO;
		total += (size_t)n;
	}
	close(in);
	if (out >= 0)
		close(out);
	return err;
}

/* Into the current directory, which is to become the root. */
static int copy_resolver_files(void)
{
	static const char *const names[] = { "hosts", "resolv.conf",
					     "nsswitch.conf", "host.conf" };
	mode_t mask = umask(022);
	size_t i;
	int err = mkdir("etc", 0755) ? -errno : 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		char from[32], to[32];

		snprintf(from, sizeof(from), "/etc/%s", names[i]);
		snprintf(to, sizeof(to), "etc/%s", names[i]);
		err = copy_file(from, to);
	}
	umask(mask);
	return err;
}

static int change_root(const char *staging, const char **step)
{
	int err;

	/* what is mounted here stays here */
	*step = "make mounts private";
	err = mount_at("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (err)
		return err;
	*step = "mount a tmpfs";
	err = mount_at("headgate", staging, "tmpfs", SAFE, ROOT_SIZE);
	if (err)
		return err;
	*step = "fill the new root";
	if (chdir(staging))
		return -errno;
	err = copy_resolver_files();
	if (err)
		return err;
	*step = "pivot_root";
	if (syscall(SYS_pivot_root, ".", "."))
		return -errno;
	*step = "detach the old root";
	if (syscall(SYS_umount2, ".", MNT_DETACH) || chdir("/"))
		return -errno;
	*step = "make the root read-only";
	return mount_at(NULL, "/", NULL,
			MS_REMOUNT | MS_BIND | MS_RDONLY | SAFE, NULL);
}

int jail_enter(const char *staging, int *ns_fd, const char **step)
{
	int err;

	*ns_fd = -1;
	*step = "unshare";
	if (unshare(CLONE_NEWNS))
		return -errno;
	/* /proc will be gone; and by pid it would take CAP_SYS_PTRACE */
	*step = "open the mount namespace";
	*ns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (*ns_fd < 0)
		return -EIO;
	err = change_root(staging, step);
	/* -EPERM means "nothing has changed" to the caller */
	return err == -EPERM ? -EACCES : err;
}

/* Like mkdir -p; what exists is fine. */
static int make_path(const char *path)
{
	char copy[4096];
	char *p;

	if (strlen(path) >= sizeof(copy))
		return -ENAMETOOLONG;
	strcpy(copy, path);
	for (p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(copy, 0755) && errno != EEXIST ? -errno : 0;
}

/* In a child of the supervisor, with nothing but system calls. */
static int change_inside(int ns_fd, const char *path, int tree, bool was_there)
{
	int err;

	if (setns(ns_fd, CLONE_NEWNS))
		return -errno;
	if (was_there)
		syscall(SYS_umount2, path, MNT_DETACH);
	if (tree < 0)
		return 0;
	err = mount_at(NULL, "/", NULL, MS_REMOUNT | MS_BIND | SAFE, NULL);
	if (err)
		return err;
	err = make_path(path);
	if (!err && syscall(SYS_move_mount, tree, "", AT_FDCWD, path,
			    MOVE_MOUNT_F_EMPTY_PATH))
		err = -errno;
	mount_at(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | SAFE,
		 NULL);
	return err;
}

/* A mount namespace is entered by a process with a single thread. */
static int change_jail(int ns_fd, const char *path, int tree, bool was_there)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(-change_inside(ns_fd, path, tree, was_there) & 0xff);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -EIO;
	return -WEXITSTATUS(status);
}

/* A copy of the mount, read-only, that is nowhere yet; or -errno. */
static int open_tree_of(const char *path)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
	};
	long fd = syscall(SYS_open_tree, AT_FDCWD, path,
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	if (!syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr,
		     sizeof(attr)))
		return (int)fd;
	err = -errno;
	close((int)fd);
	return err;
}

static int attach(struct jail_dir *d, int ns_fd)
{
	int tree, err;

	tree = open_tree_of(d->path);
	if (tree < 0)
		return tree;
	err = change_jail(ns_fd, d->path, tree, d->is_attached);
	close(tree);
	if (!err)
		d->is_attached = true;
	return err;
}

static int attach_if_new(struct jail_dir *d, int ns_fd, struct outcome *o)
{
	struct stat st;
	int err;

	/* to attach it would show everything */
	if (!strcmp(d->path, "/"))
		return outcome_fail(o, -EINVAL,
				    "a unix socket in / itself is "
				    "out of the router's reach");
	if (stat(d->path, &st)) {
		if (!d->is_missing)
			outcome_warn(o,
				     "%s: %s; its unix sockets are out of "
				     "reach until it is there",
				     d->path, strerror(errno));
		d->is_missing = true;
		return 0;
	}
	if (d->dev == st.st_dev && d->ino == st.st_ino)
		return 0;
	/* one that failed is not tried again and again */
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	err = attach(d, ns_fd);
	if (err)
		return outcome_fail(o, err,
				    "cannot attach %s to the router's "
				    "file system: %s",
				    d->path, strerror(-err));
	if (d->is_missing)
		log_say(LOG_INFO, "%s is there now", d->path);
	d->is_missing = false;
	return 0;
}

int jail_dirs_attach(struct jail_dirs *d, int ns_fd, struct outcome *o)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < d->nr_dirs && !err; i++)
		err = attach_if_new(&d->dirs[i], ns_fd, o);
	return err;
}

static struct jail_dir *find_dir(const struct jail_dirs *d, const char *path)
{
	unsigned int i;

	for (i = 0; i < d->nr_dirs; i++)
		if (!strcmp(d->dirs[i].path, path))
			return &d->dirs[i];
	return NULL;
}

void jail_dirs_detach(const struct jail_dirs *old, const struct jail_dirs *d,
		      int ns_fd)
{
	unsigned int i = old->nr_dirs;

	while (i--)
		if (old->dirs[i].is_attached && !find_dir(d, old->dirs[i].path))
			change_jail(ns_fd, old->dirs[i].path, -1, true);
}

static int add_dir(struct jail_dirs *d, const char *socket_path,
		   const struct jail_dirs *old)
{
	const char *slash = strrchr(socket_path, '/');
	size_t len = slash && slash > socket_path
			     ? (size_t)(slash - socket_path)
			     : 1;
	char *path = strndup(socket_path, len);
	struct jail_dir *dirs, *known;

	if (!path)
		return -ENOMEM;
	if (find_dir(d, path)) {
		free(path);
		return 0;
	}
	dirs = reallocarray(d->dirs, d->nr_dirs + 1, sizeof(*dirs));
	if (!dirs) {
		free(path);
		return -ENOMEM;
	}
	d->dirs = dirs;
	known = old ? find_dir(old, path) : NULL;
	dirs[d->nr_dirs] = known ? *known : (struct jail_dir){ 0 };
	dirs[d->nr_dirs++].path = path;
	return 0;
}

static int compare_length(const void *a, const void *b)
{
	size_t x = strlen(((const struct jail_dir *)a)->path);
	size_t y = strlen(((const struct jail_dir *)b)->path);

	return (x > y) - (x < y);
}

int jail_dirs_build(struct jail_dirs *d, const struct config *c,
		    const struct jail_dirs *old)
{
	unsigned int i, j;
	int err = 0;

	*d = (struct jail_dirs){ 0 };
	for (i = 0; i < c->nr_backends && !err; i++)
		for (j = 0; j < c->backends[i].nr_servers && !err; j++)
			if (c->backends[i].servers[j].unix_path)
				err = add_dir(
					d, c->backends[i].servers[j].unix_path,
					old);
	if (err)
		jail_dirs_free(d);
	else if (d->nr_dirs)
		qsort(d->dirs, d->nr_dirs, sizeof(d->dirs[0]), compare_length);
	return err;
}

void jail_dirs_free(struct jail_dirs *d)
{
	unsigned int i;

	for (i = 0; i < d->nr_dirs; i++)
		free(d->dirs[i].path);
	free(d->dirs);
	*d = (struct jail_dirs){ 0 };
}

void jail_dirs_forget(struct jail_dirs *d)
{
	unsigned int i;

	for (i = 0; i < d->nr_dirs; i++)
		d->dirs[i] = (struct jail_dir){ .path = d->dirs[i].path };
}
