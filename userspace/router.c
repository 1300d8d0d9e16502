// SPDX-License-Identifier: GPL-2.0-or-later
#include "router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "grace.h"
#include "health.h"
#include "jail.h"
#include "log.h"
#include "message.h"
#include "reply.h"
#include "resolve.h"
#include "staging.h"
#include "status.h"
#include "workers.h"

#define TICK_MS	      1000
#define DRAIN_TICK_MS 20
/* Descriptors that workers can not use up: the control thread's. */
#define RESERVE 32

struct router {
	const struct router_options *options;
	int socket, epoll_fd;
	struct reply_queue replies;
	struct health *health;
	struct resolver *resolver;
	struct workers workers;
	struct staging staging;
	unsigned int generation;
	bool is_draining, has_new_addresses;
	uint64_t ticked_ms;
};

static void tell_health(void *context, const struct server *s, bool is_down,
			const char *why)
{
	(void)context;
	if (is_down)
		log_say(LOG_WARNING, "server %s of backend %s is down: %s",
			s->label, s->backend_name, why);
	else
		log_say(LOG_INFO, "server %s of backend %s is up", s->label,
			s->backend_name);
}

static void tell_addresses(void *context, const char *host,
			   const struct address *addresses, size_t nr,
			   const char *error)
{
	struct router *r = context;
	char text[ADDRESS_TEXT];

	if (error) {
		log_say(LOG_WARNING, "cannot resolve %s: %s", host, error);
		return;
	}
	r->has_new_addresses = true;
	log_say(LOG_INFO, "%s has %zu address%s, the first is %s", host, nr,
		nr == 1 ? "" : "es",
		nr ? address_format_host(addresses, text, sizeof(text))
		   : "none");
}

static void send_answer(struct router *r, enum message_type type,
			const char *text)
{
	struct message m = { .type = type };

	strncpy(m.text, text, sizeof(m.text) - 1);
	/* a supervisor that is gone shows at the next receive */
	message_send(r->socket, &m, -1);
}

static int watch_backends(struct router *r, struct backend_set *set)
{
	int err = resolve_watch(r->resolver, set);

	return err ? err : health_watch(r->health, set);
}

/* The resolver and the checks follow what was prepared: no longer. */
static void drop_staging(struct router *r)
{
	if (r->staging.snapshot)
		watch_backends(r, snapshot_current ? snapshot_current->backends
						   : NULL);
	staging_clear(&r->staging);
}

/* Everything that can fail, fails here, and leaves what is in force alone. */
static void prepare(struct router *r)
{
	struct staging *s = &r->staging;
	int err = staging_build(s);

	if (!err && !r->workers.all)
		err = workers_make(&r->workers, r->options->nr_workers,
				   r->options->nr_connections,
				   r->options->stats);
	if (!err)
		err = watch_backends(r, s->snapshot->backends);
	if (err)
		send_answer(r, MESSAGE_FAILED,
			    s->error[0] ? s->error : strerror(-err));
	else
		send_answer(r, MESSAGE_PREPARED, "");
	if (err)
		drop_staging(r);
}

static void swap(struct router *r)
{
	struct snapshot *old = snapshot_current;
	int err;

	if (!r->staging.snapshot) {
		send_answer(r, MESSAGE_FAILED, "nothing was prepared");
		return;
	}
	r->generation = r->staging.generation;
	/* rcu_assign_pointer(), in a form that ThreadSanitizer understands */
	__atomic_store_n(&snapshot_current, staging_take(&r->staging),
			 __ATOMIC_RELEASE);
	log_set_format(snapshot_current->config->log.format);
	err = workers_run(&r->workers);
	if (err)
		send_answer(r, MESSAGE_FAILED, strerror(-err));
	else
		send_answer(r, MESSAGE_SWAPPED, "");
	if (old) {
		grace_wait();
		snapshot_free(old);
	}
}

static void drain(struct router *r, uint64_t deadline_ms)
{
	r->is_draining = true;
	workers_drain(&r->workers, deadline_ms);
}

static void answer_status(struct router *r, const struct message *m, int fd)
{
	const struct status_facts facts = {
		.config_path = r->options->config_path,
		.generation = r->generation,
		.router_restarts = m->restarts,
		.nr_workers = r->options->nr_workers,
		.nr_connections_max = r->options->nr_connections,
		.is_draining = r->is_draining,
	};

	if (fd < 0)
		return;
	reply_send(&r->replies, fd,
		   snapshot_current ? status_json(&facts, snapshot_current,
						  r->options->stats)
				    : NULL);
}

static void handle(struct router *r, const struct message *m, int fd)
{
	switch (m->type) {
	case MESSAGE_CONFIG:
		drop_staging(r);
		staging_begin(&r->staging, m, fd);
		return;
	case MESSAGE_LISTENER:
		staging_take_listener(&r->staging, m, fd);
		return;
	case MESSAGE_STATUS:
		answer_status(r, m, fd);
		return;
	case MESSAGE_PREPARE:
		prepare(r);
		break;
	case MESSAGE_SWAP:
		swap(r);
		break;
	case MESSAGE_DRAIN:
		drain(r, m->deadline_ms);
		break;
	case MESSAGE_PING:
		send_answer(r, MESSAGE_PONG, "");
		break;
	default:
		log_say(LOG_ERR, "unknown message %u", m->type);
	}
	if (fd >= 0)
		close(fd);
}

/* The soft limit is the workers'; what lies above it is for messages. */
static void allow_reserve(bool is_allowed)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	l.rlim_cur = l.rlim_max;
	if (!is_allowed)
		l.rlim_cur -=
			l.rlim_max / 8 < RESERVE ? l.rlim_max / 8 : RESERVE;
	setrlimit(RLIMIT_NOFILE, &l);
}

/* The supervisor was killed: nobody will restart us, or give us orders. */
static void lose_supervisor(struct router *r)
{
	uint64_t deadline_ms = clock_ms();

	log_say(LOG_ERR, "the supervisor is gone: draining");
	epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, r->socket, NULL);
	if (snapshot_current)
		deadline_ms += snapshot_current->config->timeouts.drain_ms;
	if (!r->is_draining)
		drain(r, deadline_ms);
}

static void receive(struct router *r)
{
	struct message m;
	int fd, err;

	allow_reserve(true);
	err = message_receive(r->socket, &m, &fd, 0);
	allow_reserve(false);
	if (err == -EPIPE)
		lose_supervisor(r);
	else if (!err || err == -EMFILE)
		handle(r, &m, fd);
	else if (err != -EAGAIN)
		log_say(LOG_ERR, "bad message: %s", strerror(-err));
}

static void tick(struct router *r)
{
	uint64_t now_ms = clock_ms();

	if (r->has_new_addresses && snapshot_current) {
		/* new servers want their checks */
		r->has_new_addresses = false;
		health_watch(r->health, snapshot_current->backends);
	}
	if (now_ms - r->ticked_ms < TICK_MS)
		return;
	r->ticked_ms = now_ms;
	backend_collect();
}

static void turn(struct router *r)
{
	struct epoll_event events[8];
	int i, nr, timeout = r->is_draining ? DRAIN_TICK_MS : TICK_MS;

	grace_leave();
	nr = epoll_wait(r->epoll_fd, events, 8, timeout);
	grace_enter();
	for (i = 0; i < nr; i++) {
		void *what = events[i].data.ptr;

		if (what == &r->socket)
			receive(r);
		else if (what == r->health)
			health_turn(r->health);
		else if (what == r->resolver)
			resolve_turn(r->resolver);
		else
			reply_queue_turn(&r->replies);
	}
	tick(r);
}

static int watch(struct router *r, int fd, void *what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_all(struct router *r)
{
	int err = reply_queue_open(&r->replies);

	if (err)
		return err;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return -errno;
	r->health = health_new(tell_health, r);
	r->resolver = resolve_new(tell_addresses, r);
	if (!r->health || !r->resolver)
		return -ENOMEM;
	err = watch(r, r->socket, &r->socket);
	if (!err)
		err = watch(r, health_fd(r->health), r->health);
	if (!err)
		err = watch(r, resolve_fd(r->resolver), r->resolver);
	if (!err)
		err = watch(r, reply_queue_fd(&r->replies), &r->replies);
	return err;
}

static void close_all(struct router *r)
{
	workers_free(&r->workers);
	resolve_free(r->resolver);
	health_free(r->health);
	staging_clear(&r->staging);
	snapshot_free(snapshot_current);
	snapshot_current = NULL;
	reply_queue_close(&r->replies);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
}

/* Into the jail, out of every privilege; and only then is there a thread. */
static int confine(struct router *r)
{
	struct message m = { .type = MESSAGE_JAILED };
	const char *step;
	int ns_fd, err = jail_enter(r->options->staging, &ns_fd, &step);

	if (err == -EPERM) {
		log_say(LOG_WARNING, "the router keeps its view of the file "
				     "system: no CAP_SYS_ADMIN");
		err = 0;
	}
	if (!err)
		err = privilege_drop(r->options->user, &step);
	if (err) {
		log_say(LOG_ERR, "the router: %s: %s", step, strerror(-err));
		return err;
	}
	err = message_send(r->socket, &m, ns_fd);
	if (ns_fd >= 0)
		close(ns_fd);
	return err;
}

int router_run(const struct router_options *options, int socket)
{
	struct router r = { .options = options,
			    .socket = socket,
			    .epoll_fd = -1,
			    .staging = {
				    .nr_workers = options->nr_workers,
				    .nr_connections_max =
					    options->nr_connections,
			    } };
	int err;

	setsid();
	prctl(PR_SET_NAME, "headgate-router", 0, 0, 0);
	if (confine(&r))
		return EXIT_FAILURE;
	allow_reserve(false);
	log_start();
	rcu_register_thread();
	err = open_all(&r);
	if (err)
		log_say(LOG_ERR, "the router: %s", strerror(-err));
	while (!err && !(r.is_draining && workers_have_ended(&r.workers)))
		turn(&r);
	close_all(&r);
	rcu_unregister_thread();
	log_stop();
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
