// SPDX-License-Identifier: GPL-2.0-or-later
#include "staging.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* All listeners there ever were: connections and log lines point to them. */
static struct listener **listeners;
static unsigned int nr_listeners;

static int fail(struct staging *s, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct staging *s, int err, const char *format, ...)
{
	va_list ap;

	if (s->error[0])
		return err;
	va_start(ap, format);
	vsnprintf(s->error, sizeof(s->error), format, ap);
	va_end(ap);
	return err;
}

/* The supervisor has checked it, and told its warnings. */
static void keep_error(void *context, bool is_error, const char *line)
{
	if (is_error)
		fail(context, -EINVAL, "%s", line);
}

static int read_config(struct staging *s, int fd)
{
	struct stat st;
	void *text;

	if (fd < 0 || fstat(fd, &st))
		return fail(s, -EBADF, "no configuration came");
	if (!st.st_size)
		return fail(s, -EINVAL, "the configuration is empty");
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return fail(s, -ENOMEM, "cannot map the configuration");
	s->config = config_parse("configuration", text, (size_t)st.st_size,
				 keep_error, s);
	munmap(text, (size_t)st.st_size);
	return s->config ? 0 : fail(s, -EINVAL, "the configuration is bad");
}

void staging_begin(struct staging *s, const struct message *m, int fd)
{
	unsigned int i;
	int err;

	staging_clear(s);
	s->generation = m->generation;
	err = read_config(s, fd);
	if (fd >= 0)
		close(fd);
	if (err)
		return;
	s->nr_fds = s->config->nr_listens * s->nr_workers;
	s->fds = calloc(s->nr_fds + 1, sizeof(*s->fds));
	if (!s->fds) {
		s->nr_fds = 0;
		fail(s, -ENOMEM, "out of memory");
	}
	for (i = 0; i < s->nr_fds; i++)
		s->fds[i] = -1;
}

void staging_take_listener(struct staging *s, const struct message *m, int fd)
{
	size_t slot = (size_t)m->listen * s->nr_workers + m->worker;

	if (fd < 0) {
		fail(s, -EMFILE,
		     "no place for a listening socket: the router "
		     "is out of descriptors");
		return;
	}
	if (m->worker >= s->nr_workers || slot >= s->nr_fds ||
	    m->transport != TRANSPORT_TCP || s->fds[slot] >= 0) {
		fail(s, -EPROTO, "a listening socket that nobody asked for");
		close(fd);
		return;
	}
	s->fds[slot] = fd;
}

/* Workers write these as they close; all must have, before it is reused. */
static bool is_closed(const struct listener *l)
{
	unsigned int i;

	for (i = 0; i < l->nr_fds; i++)
		if (__atomic_load_n(&l->fds[i], __ATOMIC_ACQUIRE) >= 0)
			return false;
	return true;
}

static struct listener *new_listener(const struct address *a,
				     unsigned int nr_workers)
{
	struct listener **more =
		reallocarray(listeners, nr_listeners + 1, sizeof(*listeners));
	struct listener *l;
	unsigned int i;

	if (!more)
		return NULL;
	listeners = more;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->fds = calloc(nr_workers, sizeof(*l->fds));
	if (!l->fds) {
		free(l);
		return NULL;
	}
	l->address = *a;
	l->transport = TRANSPORT_TCP;
	l->nr_fds = nr_workers;
	for (i = 0; i < nr_workers; i++)
		l->fds[i] = -1;
	address_format(a, l->label, sizeof(l->label));
	listeners[nr_listeners++] = l;
	return l;
}

/* One that was closed, or that never was. */
static struct listener *find_closed(const struct address *a,
				    unsigned int nr_workers)
{
	unsigned int i;

	for (i = 0; i < nr_listeners; i++)
		if (address_equal(&listeners[i]->address, a) &&
		    is_closed(listeners[i]))
			return listeners[i];
	return new_listener(a, nr_workers);
}

static struct listener *find_in_force(const struct address *a)
{
	const struct snapshot *now = snapshot_current;
	unsigned int i;

	for (i = 0; now && i < now->nr_listeners; i++)
		if (address_equal(&now->listeners[i].listener->address, a))
			return now->listeners[i].listener;
	return NULL;
}

/* The listener for a line: the one in force, or one with the new sockets. */
static struct listener *open_listener(struct staging *s, unsigned int listen)
{
	const struct address *a = &s->snapshot->config->listens[listen].address;
	struct listener *l = find_in_force(a);
	int *fds = &s->fds[listen * s->nr_workers];
	unsigned int i;

	if (l)
		return l;
	l = find_closed(a, s->nr_workers);
	if (!l) {
		fail(s, -ENOMEM, "out of memory");
		return NULL;
	}
	for (i = 0; i < s->nr_workers; i++) {
		if (fds[i] < 0) {
			fail(s, -EPROTO, "no socket came for %s", l->label);
			return NULL;
		}
	}
	for (i = 0; i < s->nr_workers; i++) {
		__atomic_store_n(&l->fds[i], fds[i], __ATOMIC_RELEASE);
		fds[i] = -1;
	}
	return l;
}

int staging_build(struct staging *s)
{
	struct config *c = s->config;
	unsigned int i;

	if (s->error[0] || !c)
		return fail(s, -EINVAL, "no configuration came");
	s->config = NULL;
	/* to refuse by number is better than to run out of descriptors */
	if (c->limits.connections > s->nr_connections_max)
		c->limits.connections = s->nr_connections_max;
	s->snapshot = snapshot_new(c, snapshot_current);
	if (!s->snapshot)
		return fail(s, -ENOMEM, "out of memory");
	for (i = 0; i < c->nr_listens; i++) {
		struct snapshot_listener *next =
			&s->snapshot->listeners[s->snapshot->nr_listeners];

		if (!(c->listens[i].transports & TRANSPORT_TCP))
			continue;
		next->listener = open_listener(s, i);
		next->config = &c->listens[i];
		if (!next->listener)
			return -EINVAL;
		s->snapshot->nr_listeners++;
	}
	return 0;
}

struct snapshot *staging_take(struct staging *s)
{
	struct snapshot *snapshot = s->snapshot;

	s->snapshot = NULL;
	staging_clear(s);
	return snapshot;
}

static void close_listener(struct listener *l)
{
	unsigned int i;

	for (i = 0; i < l->nr_fds; i++) {
		close(l->fds[i]);
		l->fds[i] = -1;
	}
}

void staging_clear(struct staging *s)
{
	struct snapshot *next = s->snapshot;
	unsigned int i;

	for (i = 0; next && i < next->nr_listeners; i++) {
		struct listener *l = next->listeners[i].listener;

		if (find_in_force(&l->address) != l)
			close_listener(l);
	}
	snapshot_free(next);
	config_free(s->config);
	for (i = 0; i < s->nr_fds; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	free(s->fds);
	*s = (struct staging){ .nr_workers = s->nr_workers,
			       .nr_connections_max = s->nr_connections_max };
}
