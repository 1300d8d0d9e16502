// SPDX-License-Identifier: GPL-2.0-or-later
#include "control.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

#define CLIENTS_MAX 16
#define REQUEST_MAX 4096
#define REQUEST_MS  2000
#define TICK_MS	    100
/* When all places are taken, a client that says nothing is worth this. */
#define EVICT_MS 250

struct client {
	int fd; /* -1: a free place */
	uint64_t since_ms;
	size_t len;
	char line[REQUEST_MAX];
};

struct control {
	int epoll_fd, listen_fd, timer_fd;
	char *path;
	gid_t gid;
	control_fn *fn;
	void *context;
	bool is_paused; /* all places are taken */
	struct client clients[CLIENTS_MAX];
	struct reply_queue replies;
};

static int open_listening(const char *path, gid_t gid)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, err = 0;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* whoever holds the lock of the directory owns the socket */
	unlink(path);
	mask = umask(0177);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)))
		err = -errno;
	umask(mask);
	if (!err && chown(path, (uid_t)-1, gid) && errno != EPERM)
		err = -errno;
	if (!err && (chmod(path, 0660) || listen(fd, 128)))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int watch(struct control *c, int fd, void *what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_all(struct control *c, const char *path, gid_t gid)
{
	int err = reply_queue_open(&c->replies);

	if (err)
		return err;
	c->path = strdup(path);
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!c->path || c->epoll_fd < 0 || c->timer_fd < 0)
		return -errno;
	c->listen_fd = open_listening(path, gid);
	if (c->listen_fd < 0)
		return c->listen_fd;
	err = watch(c, c->listen_fd, &c->listen_fd);
	if (!err)
		err = watch(c, c->timer_fd, &c->timer_fd);
	if (!err)
		err = watch(c, reply_queue_fd(&c->replies), &c->replies);
	return err;
}

struct control *control_new(const char *path, gid_t gid, control_fn *fn,
			    void *context)
{
	struct control *c = calloc(1, sizeof(*c));
	unsigned int i;
	int err;

	if (!c)
		return NULL;
	c->epoll_fd = c->listen_fd = c->timer_fd = -1;
	c->gid = gid;
	c->fn = fn;
	c->context = context;
	for (i = 0; i < CLIENTS_MAX; i++)
		c->clients[i].fd = -1;
	err = open_all(c, path, gid);
	if (!err)
		return c;
	control_free(c);
	errno = -err;
	return NULL;
}

static void end(struct client *cl)
{
	if (cl->fd >= 0)
		close(cl->fd);
	cl->fd = -1;
}

void control_free(struct control *c)
{
	unsigned int i;

	if (!c)
		return;
	for (i = 0; i < CLIENTS_MAX; i++)
		end(&c->clients[i]);
	reply_queue_close(&c->replies);
	if (c->listen_fd >= 0) {
		unlink(c->path);
		close(c->listen_fd);
	}
	if (c->timer_fd >= 0)
		close(c->timer_fd);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	free(c->path);
	free(c);
}

int control_fd(const struct control *c)
{
	return c->epoll_fd;
}

void control_reply(struct control *c, int fd, char *text)
{
	reply_send(&c->replies, fd, text);
}

static bool has_group(int fd, gid_t gid)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);
	size_t i;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

/* The file's mode says the same; this holds when somebody changed it. */
static bool may_speak(const struct control *c, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	if (cred.uid == 0 || cred.uid == geteuid() || cred.gid == c->gid ||
	    has_group(fd, c->gid))
		return true;
	log_say(LOG_WARNING,
		"control socket: refused process %d of user %u, group %u",
		(int)cred.pid, (unsigned int)cred.uid, (unsigned int)cred.gid);
	return false;
}

/* A free place; if need be, that of the client that was silent longest. */
static struct client *find_place(struct control *c)
{
	struct client *oldest = &c->clients[0];
	unsigned int i;

	for (i = 0; i < CLIENTS_MAX; i++) {
		if (c->clients[i].fd < 0)
			return &c->clients[i];
		if (c->clients[i].since_ms < oldest->since_ms)
			oldest = &c->clients[i];
	}
	if (clock_ms() - oldest->since_ms < EVICT_MS)
		return NULL;
	end(oldest);
	return oldest;
}

static void pause_accepting(struct control *c, bool is_paused)
{
	struct epoll_event e = { .events = is_paused ? 0 : EPOLLIN,
				 .data.ptr = &c->listen_fd };

	if (c->is_paused == is_paused)
		return;
	epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, c->listen_fd, &e);
	c->is_paused = is_paused;
}

static void accept_client(struct control *c)
{
	struct client *cl = find_place(c);
	int fd;

	if (!cl) {
		pause_accepting(c, true);
		return;
	}
	fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* out of descriptors: the next tick tries again */
		pause_accepting(c, errno != EAGAIN && errno != ECONNABORTED);
		return;
	}
	if (!may_speak(c, fd) || watch(c, fd, cl)) {
		close(fd);
		return;
	}
	cl->fd = fd;
	cl->since_ms = clock_ms();
	cl->len = 0;
}

/* "status", or {"command": "status"}: the word, or NULL. `len` has no '\n'. */
static char *take_word(const char *line, size_t len)
{
	json_t *j;
	char *word = NULL;

	while (len && (line[len - 1] == ' ' || line[len - 1] == '\r'))
		len--;
	if (!len || line[0] != '{')
		return strndup(line, len);
	j = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_string(json_object_get(j, "command")))
		word = strdup(json_string_value(json_object_get(j, "command")));
	json_decref(j);
	return word;
}

static void refuse(struct control *c, int fd, const char *error)
{
	char *text;

	if (asprintf(&text,
		     "{\"ok\":false,\"kind\":\"usage\",\"error\":\"%s\"}\n",
		     error) < 0)
		text = NULL;
	control_reply(c, fd, text);
}

/* From here on the descriptor is the answer's. */
static void answer(struct control *c, struct client *cl, size_t len)
{
	char *word = take_word(cl->line, len);
	int fd = cl->fd;

	epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	cl->fd = -1;
	if (!word)
		refuse(c, fd,
		       "not a command: a word, or {\\\"command\\\": ...}");
	else if (!strcmp(word, "status"))
		c->fn(c->context, CONTROL_STATUS, fd);
	else if (!strcmp(word, "reload"))
		c->fn(c->context, CONTROL_RELOAD, fd);
	else
		refuse(c, fd, "unknown command: status or reload");
	free(word);
}

static void read_client(struct control *c, struct client *cl)
{
	ssize_t n = read(cl->fd, &cl->line[cl->len], REQUEST_MAX - cl->len);
	char *newline;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(cl);
		return;
	}
	cl->len += (size_t)n;
	newline = memchr(cl->line, '\n', cl->len);
	if (newline)
		answer(c, cl, (size_t)(newline - cl->line));
	else if (cl->len == REQUEST_MAX)
		end(cl);
}

static void end_late_ones(struct control *c)
{
	uint64_t now_ms = clock_ms();
	unsigned int i;

	for (i = 0; i < CLIENTS_MAX; i++)
		if (c->clients[i].fd >= 0 &&
		    now_ms - c->clients[i].since_ms >= REQUEST_MS)
			end(&c->clients[i]);
}

/* It ticks only while there are clients. */
static void set_timer(struct control *c)
{
	struct itimerspec t = { 0 };
	bool has_clients = c->is_paused;
	uint64_t ticks;
	unsigned int i;
	ssize_t n;

	n = read(c->timer_fd, &ticks, sizeof(ticks));
	(void)n; /* only empties */
	for (i = 0; i < CLIENTS_MAX; i++)
		has_clients |= c->clients[i].fd >= 0;
	if (has_clients)
		t.it_value.tv_nsec = TICK_MS * 1000000;
	timerfd_settime(c->timer_fd, 0, &t, NULL);
}

void control_turn(struct control *c)
{
	struct epoll_event events[CLIENTS_MAX + 3];
	int i, nr;

	pause_accepting(c, false);
	nr = epoll_wait(c->epoll_fd, events, CLIENTS_MAX + 3, 0);
	for (i = 0; i < nr; i++) {
		void *what = events[i].data.ptr;
		struct client *cl = what;

		if (what == &c->replies)
			reply_queue_turn(&c->replies);
		else if (what == &c->listen_fd)
			accept_client(c);
		else if (what != &c->timer_fd && cl->fd >= 0)
			read_client(c, cl);
	}
	end_late_ones(c);
	set_timer(c);
}
