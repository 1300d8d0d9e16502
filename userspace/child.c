// SPDX-License-Identifier: GPL-2.0-or-later
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "message.h"

/* A router that is silent for so long while asked hangs. */
#define ANSWER_MS 20000

/* In the new process: its end of the pair, and no other descriptor of ours. */
static void become_router(const struct router_options *options, int socket)
{
	int status = EXIT_FAILURE;

	if (dup2(socket, 3) == 3 && !close_range(4, ~0U, 0))
		status = router_run(options, 3);
	/* what exit() would run belongs to the supervisor */
	_exit(status);
}

/* The next message that is no PONG, within ANSWER_MS in all. */
static int receive(struct child *ch, struct message *m, int *fd)
{
	uint64_t now_ms = clock_ms(), until_ms = now_ms + ANSWER_MS;
	int err;

	while (now_ms < until_ms) {
		err = message_receive(ch->socket, m, fd,
				      (int)(until_ms - now_ms));
		if (err || m->type != MESSAGE_PONG)
			return err;
		ch->nr_unanswered = 0;
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		now_ms = clock_ms();
	}
	return -EAGAIN;
}

/*
 * Waits for one message; any other, and silence, is a failure. `fd` is NULL
 * where no descriptor belongs to it: the router may have been taken over, and
 * shall not fill up our table.
 */
static int wait_for(struct child *ch, enum message_type type, int *fd,
		    struct outcome *o)
{
	struct message m;
	int came = -1, err = receive(ch, &m, &came);

	if (!err && m.type == type && fd)
		*fd = came;
	else if (came >= 0)
		close(came);
	if (!err && m.type == type)
		return 0;
	if (!err && m.type == MESSAGE_FAILED)
		return outcome_fail(o, -ECANCELED, "%s", m.text);
	if (err == -EPIPE)
		return outcome_fail(o, err, "the router has died");
	/* nobody knows what it believes: it has to begin again */
	child_kill(ch);
	return outcome_fail(o, err ? err : -EPROTO,
			    "the router does not answer");
}

static int send_to(struct child *ch, const struct message *m, int fd,
		   struct outcome *o)
{
	int err = message_send(ch->socket, m, fd);

	if (err == -EAGAIN)
		child_kill(ch);
	if (err)
		return outcome_fail(o, err, "cannot reach the router: %s",
				    strerror(-err));
	return 0;
}

int child_start(struct child *ch, const struct router_options *options,
		struct outcome *o)
{
	int pair[2], err = message_open_pair(pair);

	if (err)
		return outcome_fail(o, err, "socketpair: %s", strerror(-err));
	/* a fork copies no thread but this one, so there shall be no other */
	log_stop();
	ch->pid = fork();
	if (ch->pid == 0)
		become_router(options, pair[1]);
	err = ch->pid < 0 ? -errno : 0;
	log_start();
	close(pair[1]);
	if (err) {
		close(pair[0]);
		ch->pid = 0;
		return outcome_fail(o, err, "fork: %s", strerror(-err));
	}
	ch->socket = pair[0];
	ch->started_ms = clock_ms();
	ch->nr_workers = options->nr_workers;
	return wait_for(ch, MESSAGE_JAILED, &ch->mount_ns, o);
}

/* The flat text in a memfd that nobody can change any more; or -errno. */
static int open_text(const struct config *c)
{
	int fd = memfd_create("configuration", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *f;
	int copy, err;

	if (fd < 0)
		return -errno;
	copy = dup(fd);
	f = copy < 0 ? NULL : fdopen(copy, "w");
	if (!f) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		close(fd);
		return err;
	}
	err = config_print(c, f, true);
	if (fclose(f) && !err)
		err = -errno;
	if (!err &&
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int send_config(struct child *ch, const struct config *c,
		       unsigned int generation, struct outcome *o)
{
	const struct message m = { .type = MESSAGE_CONFIG,
				   .generation = generation };
	int fd = open_text(c), err;

	if (fd < 0)
		return outcome_fail(o, fd,
				    "cannot write the configuration "
				    "for the router: %s",
				    strerror(-fd));
	err = send_to(ch, &m, fd, o);
	close(fd);
	return err;
}

static int send_group(struct child *ch, const struct listener_entry *e,
		      unsigned int nr_workers, struct outcome *o)
{
	struct message m = { .type = MESSAGE_LISTENER,
			     .listen = e->listen,
			     .transport = e->group->transport };
	int err = 0;

	for (m.worker = 0; m.worker < nr_workers && !err; m.worker++)
		err = send_to(ch, &m,
			      e->group->fds[m.worker % e->group->nr_fds], o);
	return err;
}

int child_prepare(struct child *ch, const struct config *c,
		  unsigned int generation, const struct listener_set *set,
		  const struct listener_set *old, struct outcome *o)
{
	const struct message prepare = { .type = MESSAGE_PREPARE };
	int err = send_config(ch, c, generation, o);
	unsigned int i;

	for (i = 0; i < set->nr_entries && !err; i++)
		if (!listener_set_has(old, set->entries[i].group))
			err = send_group(ch, &set->entries[i], ch->nr_workers,
					 o);
	if (!err)
		err = send_to(ch, &prepare, -1, o);
	if (!err)
		err = wait_for(ch, MESSAGE_PREPARED, NULL, o);
	return err;
}

int child_swap(struct child *ch, struct outcome *o)
{
	const struct message swap = { .type = MESSAGE_SWAP };
	int err = send_to(ch, &swap, -1, o);

	return err ? err : wait_for(ch, MESSAGE_SWAPPED, NULL, o);
}

int child_pass_status(struct child *ch, int fd, unsigned int generation,
		      unsigned int restarts)
{
	const struct message m = { .type = MESSAGE_STATUS,
				   .generation = generation,
				   .restarts = restarts };

	return message_send(ch->socket, &m, fd);
}

int child_drain(struct child *ch, uint64_t deadline_ms)
{
	const struct message m = { .type = MESSAGE_DRAIN,
				   .deadline_ms = deadline_ms };

	return message_send(ch->socket, &m, -1);
}

/* Nothing but a PONG comes unasked; whatever came with it is not wanted. */
static void take_pongs(struct child *ch)
{
	struct message m;
	int i, fd;

	for (i = 0; i < 8; i++) {
		if (message_receive(ch->socket, &m, &fd, 0))
			return;
		if (fd >= 0)
			close(fd);
		if (m.type == MESSAGE_PONG)
			ch->nr_unanswered = 0;
	}
}

unsigned int child_ping(struct child *ch)
{
	const struct message m = { .type = MESSAGE_PING };

	take_pongs(ch);
	/* one at a time, so there is room for it and for its answer */
	if (!ch->nr_unanswered)
		message_send(ch->socket, &m, -1);
	return ch->nr_unanswered++;
}

void child_kill(struct child *ch)
{
	if (ch->pid > 0)
		kill(ch->pid, SIGKILL);
}

void child_forget(struct child *ch)
{
	if (ch->socket >= 0)
		close(ch->socket);
	if (ch->mount_ns >= 0)
		close(ch->mount_ns);
	*ch = (struct child){ .socket = -1, .mount_ns = -1 };
}
