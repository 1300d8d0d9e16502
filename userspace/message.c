// SPDX-License-Identifier: GPL-2.0-or-later
#include "message.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

int message_open_pair(int fds[2])
{
	const struct timeval patience = { .tv_sec = 5 };
	int i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	for (i = 0; i < 2; i++)
		setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &patience,
			   sizeof(patience));
	return 0;
}

int message_send(int socket, const struct message *m, int fd)
{
	struct iovec iov = { (void *)(uintptr_t)m, sizeof(*m) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	while (sendmsg(socket, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int take_descriptor(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int wait_readable(int socket, int timeout_ms)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -EAGAIN;
}

int message_receive(int socket, struct message *m, int *fd, int timeout_ms)
{
	struct iovec iov = { m, sizeof(*m) };
	/*
	 * Room for one, and the kernel drops what does not fit: so it is
	 * CMSG_LEN, since the padding of CMSG_SPACE holds a second one.
	 */
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t n;
	int err;

	*fd = -1;
	err = wait_readable(socket, timeout_ms);
	if (err)
		return err;
	n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	*fd = take_descriptor(&msg);
	if (n != (ssize_t)sizeof(*m) || (msg.msg_flags & MSG_TRUNC))
		err = -EPROTO;
	else if (msg.msg_flags & MSG_CTRUNC)
		err = -EMFILE;
	if (err && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	/* it is text from the other side: it ends where it must */
	m->text[sizeof(m->text) - 1] = '\0';
	return err;
}
