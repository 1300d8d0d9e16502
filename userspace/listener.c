// SPDX-License-Identifier: GPL-2.0-or-later
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define BACKLOG	 4096 /* the kernel cuts it to net.core.somaxconn */
#define BIND_MS	 2000 /* a router that drains gives up its port at once */
#define RETRY_MS 50

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* ":443" is one socket for both families, IPv4 alone without IPv6. */
static int open_socket(const struct address *a, struct sockaddr_storage *sa,
		       socklen_t *len)
{
	struct address v4 = { .family = AF_INET, .port = a->port };
	int fd;

	*len = address_to_sockaddr(a, sa);
	fd = socket(sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    IPPROTO_TCP);
	if (fd < 0 && errno == EAFNOSUPPORT && a->family == AF_UNSPEC) {
		*len = address_to_sockaddr(&v4, sa);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			    IPPROTO_TCP);
	}
	if (fd < 0)
		return -errno;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (sa->ss_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY,
			   a->family == AF_INET6);
	return fd;
}

/*
 * SO_REUSEPORT would let a second daemon of the same user share the port, and
 * half of the connections, without a word. A socket without it finds out.
 */
static int probe(const struct address *a)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int fd = open_socket(a, &sa, &len), err = 0;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&sa, len))
		err = -errno;
	close(fd);
	return err;
}

static int probe_patiently(const struct address *a)
{
	const struct timespec pause = { .tv_nsec = RETRY_MS * 1000000 };
	int tries, err = -EADDRINUSE;

	for (tries = 0; tries < BIND_MS / RETRY_MS; tries++) {
		err = probe(a);
		if (err != -EADDRINUSE)
			break;
		nanosleep(&pause, NULL);
	}
	return err;
}

static int open_listening(const struct address *a)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int fd = open_socket(a, &sa, &len), err;

	if (fd < 0)
		return fd;
	err = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	/* accepted sockets inherit it */
	if (!err)
		err = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!err &&
	    (bind(fd, (struct sockaddr *)&sa, len) || listen(fd, BACKLOG)))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void close_group(struct listener_group *g)
{
	unsigned int i;

	for (i = 0; i < g->nr_fds && !g->is_inherited; i++)
		if (g->fds[i] >= 0)
			close(g->fds[i]);
	free(g);
}

static struct listener_group *new_group(const struct address *a,
					unsigned int nr_fds)
{
	struct listener_group *g;
	unsigned int i;

	g = malloc(sizeof(*g) + nr_fds * sizeof(g->fds[0]));
	if (!g)
		return NULL;
	*g = (struct listener_group){ .address = *a,
				      .transport = TRANSPORT_TCP,
				      .nr_fds = nr_fds };
	for (i = 0; i < nr_fds; i++)
		g->fds[i] = -1;
	return g;
}

static int bind_group(struct listener_group *g, bool must_probe)
{
	unsigned int i;
	int err = must_probe ? probe_patiently(&g->address) : 0;

	for (i = 0; i < g->nr_fds && !err; i++) {
		g->fds[i] = open_listening(&g->address);
		if (g->fds[i] < 0)
			err = g->fds[i];
	}
	return err;
}

static struct listener_group *find_group(const struct listener_set *set,
					 const struct address *a)
{
	unsigned int i;

	for (i = 0; set && i < set->nr_entries; i++)
		if (address_equal(&set->entries[i].group->address, a))
			return set->entries[i].group;
	return NULL;
}

/* A wildcard of our own would answer the probe. */
static bool has_port(const struct listener_set *set, uint16_t port)
{
	unsigned int i;

	for (i = 0; set && i < set->nr_entries; i++)
		if (set->entries[i].group->address.port == port)
			return true;
	return false;
}

static const struct inherited_socket *
find_inherited(const struct listener_inherited *in, const struct address *a)
{
	unsigned int i;

	for (i = 0; i < in->nr_sockets; i++)
		if (address_equal(&in->sockets[i].address, a))
			return &in->sockets[i];
	return NULL;
}

struct build {
	struct listener_set *set;
	const struct listener_set *old;
	const struct listener_inherited *in;
	unsigned int nr_workers;
	struct outcome *outcome;
};

static int open_group(const struct build *b, const struct address *a,
		      struct listener_group **out)
{
	const struct inherited_socket *passed = find_inherited(b->in, a);
	struct listener_group *g = new_group(a, passed ? 1 : b->nr_workers);
	char text[ADDRESS_TEXT];
	int err;

	if (!g)
		return outcome_fail(b->outcome, -ENOMEM, "out of memory");
	if (passed) {
		g->is_inherited = true;
		g->fds[0] = passed->fd;
		*out = g;
		return 0;
	}
	err = bind_group(g, !has_port(b->old, a->port) &&
				    !has_port(b->set, a->port));
	if (!err) {
		*out = g;
		return 0;
	}
	close_group(g);
	address_format(a, text, sizeof(text));
	if (err == -EADDRINUSE)
		return outcome_fail(b->outcome, err,
				    "cannot listen on %s: another process "
				    "listens there",
				    text);
	return outcome_fail(b->outcome, err, "cannot listen on %s: %s", text,
			    strerror(-err));
}

int listener_set_build(struct listener_set *set, const struct config *c,
		       const struct listener_set *old,
		       const struct listener_inherited *in,
		       unsigned int nr_workers, struct outcome *o)
{
	const struct build b = { set, old, in, nr_workers, o };
	unsigned int i;
	int err = 0;

	set->nr_entries = 0;
	set->entries = calloc(c->nr_listens + 1, sizeof(*set->entries));
	if (!set->entries)
		return outcome_fail(o, -ENOMEM, "out of memory");
	for (i = 0; i < c->nr_listens && !err; i++) {
		const struct address *a = &c->listens[i].address;
		struct listener_group *g;

		/* QUIC has no sockets yet; check says so */
		if (!(c->listens[i].transports & TRANSPORT_TCP))
			continue;
		g = find_group(old, a);
		if (!g)
			err = open_group(&b, a, &g);
		if (!err)
			set->entries[set->nr_entries++] =
				(struct listener_entry){ i, g };
	}
	if (err)
		listener_set_close(set, old);
	return err;
}

bool listener_set_has(const struct listener_set *set,
		      const struct listener_group *g)
{
	unsigned int i;

	for (i = 0; set && i < set->nr_entries; i++)
		if (set->entries[i].group == g)
			return true;
	return false;
}

void listener_set_close(struct listener_set *set,
			const struct listener_set *keep)
{
	unsigned int i;

	for (i = 0; i < set->nr_entries; i++)
		if (!listener_set_has(keep, set->entries[i].group))
			close_group(set->entries[i].group);
	free(set->entries);
	*set = (struct listener_set){ 0 };
}

static int take_inherited(int fd, struct inherited_socket *out)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa), int_len = sizeof(int);
	int v6only = 0, err;

	if (!sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1))
		return -EINVAL;
	if (getsockname(fd, (struct sockaddr *)&sa, &len))
		return -errno;
	err = address_from_sockaddr((struct sockaddr *)&sa, &out->address);
	if (err)
		return err;
	getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &int_len);
	if (out->address.family == AF_INET6 && !v6only &&
	    IN6_IS_ADDR_UNSPECIFIED(&out->address.v6))
		out->address.family = AF_UNSPEC;
	out->fd = fd;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

int listener_inherit(struct listener_inherited *in)
{
	int i, err, nr = sd_listen_fds(1);

	if (nr <= 0)
		return nr;
	in->sockets = calloc((size_t)nr, sizeof(*in->sockets));
	if (!in->sockets)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		err = take_inherited(fd, &in->sockets[in->nr_sockets]);
		if (!err) {
			in->nr_sockets++;
			continue;
		}
		log_say(LOG_WARNING,
			"descriptor %d from systemd is no listening TCP socket",
			fd);
		close(fd);
	}
	return 0;
}

void listener_warn_unused(const struct listener_inherited *in,
			  const struct listener_set *set, struct outcome *o)
{
	char text[ADDRESS_TEXT];
	unsigned int i;

	for (i = 0; i < in->nr_sockets; i++) {
		const struct address *a = &in->sockets[i].address;

		if (!find_group(set, a))
			outcome_warn(o,
				     "systemd passed a socket on %s, which "
				     "no listen line uses",
				     address_format(a, text, sizeof(text)));
	}
}
