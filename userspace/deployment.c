// SPDX-License-Identifier: GPL-2.0-or-later
#include "deployment.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

/* One end to the client, one to the server. */
#define DESCRIPTORS_PER_CONNECTION 2
#define CONNECTIONS_MAX		   (1024 * 1024)

_Static_assert(CONFIG_WORKERS_MAX <= STATS_WORKERS_MAX,
	       "each worker has counters of its own");

static unsigned int count_workers(const struct config *c)
{
	cpu_set_t set;
	int nr = 1;

	if (c->workers)
		nr = (int)c->workers;
	else if (!sched_getaffinity(0, sizeof(set), &set))
		nr = CPU_COUNT(&set);
	return nr > CONFIG_WORKERS_MAX ? CONFIG_WORKERS_MAX : (unsigned int)nr;
}

/* The rest is for listeners, epoll instances, checks and pooled pipes. */
static unsigned int count_connections(const struct config *c,
				      unsigned int nr_descriptors,
				      unsigned int nr_workers)
{
	unsigned int reserve = 64 + nr_workers * (16 + c->nr_listens);
	unsigned int nr;

	/* with so few, some connections are still better than none */
	if (reserve > nr_descriptors / 2)
		reserve = nr_descriptors / 2;
	nr = (nr_descriptors - reserve) / DESCRIPTORS_PER_CONNECTION;
	return nr < CONNECTIONS_MAX ? nr : CONNECTIONS_MAX;
}

static void warn_about_limits(const struct deployment *d,
			      const struct config *c, struct outcome *o)
{
	if (c->limits.connections > d->router.nr_connections)
		outcome_warn(o,
			     "limit connections %u: the open file limit "
			     "allows %u",
			     c->limits.connections, d->router.nr_connections);
}

static int find_user(struct deployment *d, struct outcome *o)
{
	const struct config *c = d->config;
	int err;

	if (!privilege_may_change_user()) {
		outcome_warn(o, "not started as root: the router runs as the "
				"same user");
		d->user.uid = geteuid();
		d->user.gid = getegid();
		return 0;
	}
	err = privilege_find_user(c->user, &d->user);
	if (err) {
		outcome_fail(o, err, "%s: error: there is no user %s",
			     d->config_path, c->user ? c->user : "nobody");
		o->kind = OUTCOME_BAD_CONFIG;
		return err;
	}
	if (!d->user.uid)
		outcome_warn(o, "the router runs as root, though without "
				"capabilities");
	else if (d->user.is_nobody && !c->user)
		outcome_warn(o, "there is no user headgate: the router runs as "
				"nobody");
	d->router.user = &d->user;
	return 0;
}

int deployment_init(struct deployment *d, const char *config_path,
		    struct config *c, struct outcome *o)
{
	unsigned int nr_descriptors = privilege_raise_descriptors();
	int err;

	*d = (struct deployment){ .config_path = config_path,
				  .config = c,
				  .generation = 1,
				  .child = { .socket = -1, .mount_ns = -1 } };
	err = find_user(d, o);
	if (err)
		return err;
	d->router.config_path = config_path;
	d->router.nr_workers = count_workers(c);
	d->router.nr_connections =
		count_connections(c, nr_descriptors, d->router.nr_workers);
	d->router.stats = stats_new(d->router.nr_workers);
	if (!d->router.stats || jail_dirs_build(&d->dirs, c, NULL))
		return outcome_fail(o, -ENOMEM, "out of memory");
	warn_about_limits(d, c, o);
	return 0;
}

int deployment_listen(struct deployment *d, struct outcome *o)
{
	int err = listener_inherit(&d->inherited);

	if (err)
		return outcome_fail(o, err, "sockets from systemd: %s",
				    strerror(-err));
	err = listener_set_build(&d->listeners, d->config, NULL, &d->inherited,
				 d->router.nr_workers, o);
	if (!err)
		listener_warn_unused(&d->inherited, &d->listeners, o);
	return err;
}

int deployment_start_router(struct deployment *d, struct outcome *o)
{
	int err;

	stats_reset_gauges(d->router.stats);
	jail_dirs_forget(&d->dirs);
	err = child_start(&d->child, &d->router, o);
	if (!err && d->child.mount_ns >= 0)
		err = jail_dirs_attach(&d->dirs, d->child.mount_ns, o);
	if (!err)
		err = child_prepare(&d->child, d->config, d->generation,
				    &d->listeners, NULL, o);
	if (!err)
		err = child_swap(&d->child, o);
	if (err)
		child_kill(&d->child);
	return err;
}

static void warn_about_user(const struct deployment *d, const struct config *c,
			    struct outcome *o)
{
	const char *now = d->user.name;
	struct privilege_user next;

	/* without privileges it stays who it is, whatever the file says */
	if (!d->router.user || (c->user && !strcmp(c->user, now)))
		return;
	if (privilege_find_user(c->user, &next))
		outcome_warn(o, "there is no user %s: the next start fails",
			     c->user ? c->user : "nobody");
	else if (strcmp(next.name, now))
		outcome_warn(o,
			     "user changes to %s at the next restart; it is %s",
			     next.name, now);
}

/* Compared with what runs: the last file may have changed it, too. */
static void warn_about_restart(const struct deployment *d,
			       const struct config *c, struct outcome *o)
{
	unsigned int nr_workers = count_workers(c);

	if (nr_workers != d->router.nr_workers)
		outcome_warn(o,
			     "workers changes to %u at the next restart; it is "
			     "%u",
			     nr_workers, d->router.nr_workers);
	warn_about_user(d, c, o);
	warn_about_limits(d, c, o);
}

/* What a reload builds next to what is in force. */
struct next {
	struct config *config;
	struct listener_set listeners;
	struct jail_dirs dirs;
};

static int build_next(struct deployment *d, struct next *n, struct outcome *o)
{
	int err;

	n->config = config_load(d->config_path, outcome_report, o);
	if (!n->config) {
		o->kind = OUTCOME_BAD_CONFIG;
		return -EINVAL;
	}
	warn_about_restart(d, n->config, o);
	if (jail_dirs_build(&n->dirs, n->config, &d->dirs))
		return outcome_fail(o, -ENOMEM, "out of memory");
	err = listener_set_build(&n->listeners, n->config, &d->listeners,
				 &d->inherited, d->router.nr_workers, o);
	if (err)
		return err;
	listener_warn_unused(&d->inherited, &n->listeners, o);
	/* without a router, the next one begins with all of this */
	if (!d->child.pid)
		return 0;
	if (d->child.mount_ns >= 0)
		err = jail_dirs_attach(&n->dirs, d->child.mount_ns, o);
	if (!err)
		err = child_prepare(&d->child, n->config, d->generation + 1,
				    &n->listeners, &d->listeners, o);
	return err;
}

/* Of a failed reload: whatever it opened, closes, what it attached, goes. */
static void drop_next(struct deployment *d, struct next *n)
{
	if (d->child.mount_ns >= 0)
		jail_dirs_detach(&n->dirs, &d->dirs, d->child.mount_ns);
	listener_set_close(&n->listeners, &d->listeners);
	jail_dirs_free(&n->dirs);
	config_free(n->config);
}

/*
 * From here there is no way back, and none is needed. The sockets of lines
 * that went away are closed here first: while the supervisor holds a copy the
 * kernel would queue connections that no worker takes.
 */
static int commit(struct deployment *d, struct next *n, struct outcome *o)
{
	struct next old = { d->config, d->listeners, d->dirs };
	int err = 0;

	d->config = n->config;
	d->listeners = n->listeners;
	d->dirs = n->dirs;
	d->generation++;
	log_set_format(d->config->log.format);
	listener_set_close(&old.listeners, &d->listeners);
	if (d->child.pid)
		err = child_swap(&d->child, o);
	/* a router that does not follow ends, and the next one will */
	if (err)
		child_kill(&d->child);
	if (d->child.mount_ns >= 0)
		jail_dirs_detach(&old.dirs, &d->dirs, d->child.mount_ns);
	jail_dirs_free(&old.dirs);
	config_free(old.config);
	return err;
}

int deployment_reload(struct deployment *d, struct outcome *o)
{
	struct next n = { 0 };
	int err = build_next(d, &n, o);

	if (err) {
		drop_next(d, &n);
		log_say(LOG_ERR, "reload failed, generation %u stays: %s",
			d->generation, o->error);
		return err;
	}
	err = commit(d, &n, o);
	if (!err)
		log_say(LOG_INFO, "reloaded %s, generation %u", d->config_path,
			d->generation);
	return err;
}

void deployment_follow_dirs(struct deployment *d)
{
	struct outcome o = { 0 };

	if (d->child.pid && d->child.mount_ns >= 0)
		jail_dirs_attach(&d->dirs, d->child.mount_ns, &o);
	outcome_fini(&o);
}

void deployment_stop_listening(struct deployment *d)
{
	listener_set_close(&d->listeners, NULL);
}

void deployment_fini(struct deployment *d)
{
	unsigned int i;

	listener_set_close(&d->listeners, NULL);
	for (i = 0; i < d->inherited.nr_sockets; i++)
		close(d->inherited.sockets[i].fd);
	free(d->inherited.sockets);
	jail_dirs_free(&d->dirs);
	config_free(d->config);
	child_forget(&d->child);
	stats_free(d->router.stats);
}
