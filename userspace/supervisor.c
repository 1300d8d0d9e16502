// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "deployment.h"
#include "log.h"
#include "preflight.h"
#include "run_dir.h"

#define BACKOFF_MIN_MS 200
#define BACKOFF_MAX_MS 5000
#define LONG_LIFE_MS   10000 /* a router that lived so long starts afresh */
#define TICK_MS	       1000
#define KILL_AFTER_MS  2000 /* beyond the deadline that it was given */
#define PING_MS	       2000
#define PINGS_MAX      5 /* unanswered, and the router hangs */

struct supervisor {
	const struct supervisor_options *options;
	struct deployment deployment;
	struct run_dir run_dir;
	struct control *control;
	int epoll_fd, signal_fd;
	unsigned int backoff_ms;
	uint64_t restart_at_ms; /* 0: no restart is due */
	uint64_t kill_at_ms;	/* 0: it is not draining */
	uint64_t ticked_ms, pinged_ms;
	bool is_hurried, has_ended;
	int status;
};

int supervisor_check(const struct supervisor_options *o)
{
	return preflight_check(o->config_path) ? SUPERVISOR_USAGE
					       : SUPERVISOR_OK;
}

static bool is_draining(const struct supervisor *s)
{
	return s->kill_at_ms != 0;
}

static void say_ready(const struct supervisor *s)
{
	const struct deployment *d = &s->deployment;

	log_say(LOG_INFO,
		"ready: %u listener%s, %u workers, at most %u connections, "
		"configuration %s",
		d->listeners.nr_entries,
		d->listeners.nr_entries == 1 ? "" : "s", d->router.nr_workers,
		d->router.nr_connections < d->config->limits.connections
			? d->router.nr_connections
			: d->config->limits.connections,
		d->config_path);
	sd_notifyf(0, "READY=1\nSTATUS=Routing, configuration generation %u",
		   d->generation);
}

/* Not for the log: whoever asks every second would fill it. */
static char *error_json(const struct supervisor *s, const char *error)
{
	struct outcome o = { .kind = OUTCOME_FAILED };

	snprintf(o.error, sizeof(o.error), "%s", error);
	return outcome_json(&o, s->deployment.generation);
}

static void reload(struct supervisor *s, struct outcome *o)
{
	struct deployment *d = &s->deployment;

	if (is_draining(s)) {
		outcome_fail(o, -ESHUTDOWN, "headgated is draining");
		return;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_us());
	deployment_reload(d, o);
	/* also after a failure: what was in force still is */
	sd_notifyf(0, "READY=1\nSTATUS=%s, configuration generation %u",
		   o->kind == OUTCOME_OK ? "Routing" : "The last reload failed",
		   d->generation);
}

static void answer_status(struct supervisor *s, int fd)
{
	struct deployment *d = &s->deployment;

	if (!d->child.pid) {
		control_reply(s->control, fd,
			      error_json(s, "the router is being restarted"));
		return;
	}
	if (child_pass_status(&d->child, fd, d->generation, d->restarts))
		control_reply(s->control, fd,
			      error_json(s, "the router does not answer"));
	else
		close(fd);
}

static void answer(void *context, enum control_command command, int fd)
{
	struct supervisor *s = context;
	struct outcome o = { 0 };

	if (command == CONTROL_STATUS) {
		answer_status(s, fd);
		return;
	}
	reload(s, &o);
	control_reply(s->control, fd,
		      outcome_json(&o, s->deployment.generation));
	outcome_fini(&o);
}

/* The first call sets a deadline, the next one lets it be now. */
static void drain(struct supervisor *s)
{
	struct deployment *d = &s->deployment;
	uint64_t now_ms = clock_ms(), deadline_ms = now_ms;

	s->is_hurried = is_draining(s);
	if (!s->is_hurried) {
		deadline_ms += d->config->timeouts.drain_ms;
		log_say(LOG_INFO, "draining, for %u ms at most",
			d->config->timeouts.drain_ms);
		sd_notify(0, "STOPPING=1\nSTATUS=Draining");
	}
	s->restart_at_ms = 0;
	s->kill_at_ms = deadline_ms + KILL_AFTER_MS;
	deployment_stop_listening(d);
	if (!d->child.pid)
		s->has_ended = true;
	else if (child_drain(&d->child, deadline_ms))
		child_kill(&d->child);
}

static void schedule_restart(struct supervisor *s)
{
	s->restart_at_ms = clock_ms() + s->backoff_ms;
	log_say(LOG_INFO, "the router starts again in %u ms", s->backoff_ms);
	s->backoff_ms *= 2;
	if (s->backoff_ms > BACKOFF_MAX_MS)
		s->backoff_ms = BACKOFF_MAX_MS;
}

static void log_death(const struct child *ch, int status)
{
	if (WIFSIGNALED(status))
		log_say(LOG_ERR,
			"the router (process %d) died of signal %d%s%s",
			(int)ch->pid, WTERMSIG(status), ", ",
			strsignal(WTERMSIG(status)));
	else
		log_say(WEXITSTATUS(status) ? LOG_ERR : LOG_INFO,
			"the router (process %d) exited with status %d",
			(int)ch->pid, WEXITSTATUS(status));
}

static void reap(struct supervisor *s)
{
	struct child *ch = &s->deployment.child;
	bool lived_long;
	int status;

	if (!ch->pid || waitpid(ch->pid, &status, WNOHANG) != ch->pid)
		return;
	log_death(ch, status);
	lived_long = clock_ms() - ch->started_ms >= LONG_LIFE_MS;
	child_forget(ch);
	if (is_draining(s)) {
		s->has_ended = true;
		if (!s->is_hurried && status)
			s->status = SUPERVISOR_FAILED;
		return;
	}
	if (lived_long)
		s->backoff_ms = BACKOFF_MIN_MS;
	schedule_restart(s);
}

static int start_router(struct supervisor *s, struct outcome *o)
{
	int err = run_dir_make_staging(&s->run_dir, o);

	return err ? err : deployment_start_router(&s->deployment, o);
}

static void restart(struct supervisor *s)
{
	struct deployment *d = &s->deployment;
	struct outcome o = { 0 };

	s->restart_at_ms = 0;
	d->restarts++;
	if (!start_router(s, &o))
		say_ready(s);
	else if (!d->child.pid)
		schedule_restart(s);
	/* else it is reaped soon, and that schedules the next try */
	outcome_fini(&o);
}

static void handle_signals(struct supervisor *s)
{
	struct outcome o = { 0 };
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGHUP:
			reload(s, &o);
			outcome_fini(&o);
			break;
		case SIGCHLD:
			reap(s);
			break;
		default:
			drain(s);
		}
	}
}

/*
 * Counted in pings, not in time: when the whole machine was stopped for a
 * while that is one.
 */
static void watch_router(struct supervisor *s)
{
	struct child *ch = &s->deployment.child;
	uint64_t now_ms = clock_ms();

	if (!ch->pid || now_ms - s->pinged_ms < PING_MS)
		return;
	s->pinged_ms = now_ms;
	if (child_ping(ch) < PINGS_MAX)
		return;
	log_say(LOG_ERR,
		"the router (process %d) has not answered for %d s: killed",
		(int)ch->pid, PINGS_MAX * PING_MS / 1000);
	child_kill(ch);
}

static void tick(struct supervisor *s)
{
	uint64_t now_ms = clock_ms();

	if (s->restart_at_ms && now_ms >= s->restart_at_ms)
		restart(s);
	if (is_draining(s) && now_ms >= s->kill_at_ms) {
		log_say(LOG_ERR, "the router has not ended in time");
		child_kill(&s->deployment.child);
		s->kill_at_ms = now_ms + KILL_AFTER_MS;
	}
	if (now_ms - s->ticked_ms < TICK_MS)
		return;
	s->ticked_ms = now_ms;
	watch_router(s);
	deployment_follow_dirs(&s->deployment);
	/* does nothing unless the watchdog is on */
	sd_notify(0, "WATCHDOG=1");
}

static int wait_ms(const struct supervisor *s)
{
	uint64_t now_ms = clock_ms(), until_ms = now_ms + TICK_MS;

	if (s->restart_at_ms && s->restart_at_ms < until_ms)
		until_ms = s->restart_at_ms;
	if (is_draining(s) && s->kill_at_ms < until_ms)
		until_ms = s->kill_at_ms;
	return until_ms > now_ms ? (int)(until_ms - now_ms) : 0;
}

static void loop(struct supervisor *s)
{
	struct epoll_event events[4];
	int i, nr;

	while (!s->has_ended) {
		nr = epoll_wait(s->epoll_fd, events, 4, wait_ms(s));
		for (i = 0; i < nr; i++) {
			if (events[i].data.fd == s->signal_fd)
				handle_signals(s);
			else
				control_turn(s->control);
		}
		tick(s);
	}
}

static int open_signals(struct supervisor *s, struct outcome *o)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return outcome_fail(o, -errno, "signalfd: %s", strerror(errno));
	return 0;
}

static int watch(struct supervisor *s, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_control(struct supervisor *s, struct outcome *o)
{
	const struct privilege_user *u = &s->deployment.user;
	int err;

	/* the group of nobody is no group to trust */
	s->control = control_new(s->run_dir.control, u->is_nobody ? 0 : u->gid,
				 answer, s);
	if (!s->control)
		return outcome_fail(o, -errno, "%s: %s", s->run_dir.control,
				    strerror(errno));
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return outcome_fail(o, -errno, "epoll: %s", strerror(errno));
	err = watch(s, s->signal_fd);
	return err ? err : watch(s, control_fd(s->control));
}

static int start(struct supervisor *s, struct config *c, struct outcome *o)
{
	struct deployment *d = &s->deployment;
	int err = deployment_init(d, s->options->config_path, c, o);

	if (!err)
		err = run_dir_open(&s->run_dir, s->options->run_dir,
				   d->user.is_nobody ? 0 : d->user.gid, o);
	d->router.staging = s->run_dir.staging;
	if (!err)
		err = deployment_listen(d, o);
	if (!err)
		err = open_signals(s, o);
	if (!err)
		err = open_control(s, o);
	if (!err)
		err = start_router(s, o);
	if (err && d->child.pid)
		waitpid(d->child.pid, NULL, 0);
	return err;
}

static void stop(struct supervisor *s)
{
	control_free(s->control);
	deployment_fini(&s->deployment);
	run_dir_close(&s->run_dir);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	log_stop();
}

int supervisor_run(const struct supervisor_options *options)
{
	struct supervisor s = { .options = options,
				.run_dir = { .lock_fd = -1 },
				.epoll_fd = -1,
				.signal_fd = -1,
				.backoff_ms = BACKOFF_MIN_MS };
	struct config *c = preflight_load(options->config_path);
	struct outcome o = { 0 };

	if (!c)
		return SUPERVISOR_USAGE;
	if (!start(&s, c, &o)) {
		say_ready(&s);
		loop(&s);
		log_say(LOG_INFO, "stopped");
	} else {
		s.status = o.kind == OUTCOME_BAD_CONFIG ? SUPERVISOR_USAGE
							: SUPERVISOR_FAILED;
	}
	outcome_fini(&o);
	stop(&s);
	return s.status;
}
