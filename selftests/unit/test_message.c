// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages with descriptors: none of those that nobody asked for stays open. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child.h"
#include "message.h"

static unsigned int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int nr = 0;

	assert_non_null(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

/* As a peer that was taken over would: any number, by one sendmsg(). */
static void send_with(int socket, enum message_type type, unsigned int nr_fds)
{
	struct message m = { .type = type };
	struct iovec iov = { &m, sizeof(m) };
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen =
				      CMSG_SPACE(nr_fds * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fds[8] = { 0 };

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, nr_fds * sizeof(int));
	assert_int_equal(sendmsg(socket, &msg, 0), sizeof(m));
}

static void one_descriptor(void **state)
{
	struct message m = { .type = MESSAGE_STATUS, .restarts = 7 };
	int pair[2], fd;

	(void)state;
	assert_int_equal(message_open_pair(pair), 0);
	assert_int_equal(message_send(pair[0], &m, STDIN_FILENO), 0);
	memset(&m, 0, sizeof(m));
	assert_int_equal(message_receive(pair[1], &m, &fd, 0), 0);
	assert_int_equal(m.restarts, 7);
	assert_true(fd > 2);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(message_receive(pair[1], &m, &fd, 0), -EAGAIN);
	close(pair[0]);
	assert_int_equal(message_receive(pair[1], &m, &fd, 0), -EPIPE);
	close(pair[1]);
}

/* Two fit into the padding behind the place for one. */
static void too_many_descriptors(void **state)
{
	unsigned int nr, before;
	struct message m;
	int pair[2], fd;

	(void)state;
	assert_int_equal(message_open_pair(pair), 0);
	before = count_descriptors();
	for (nr = 2; nr <= 8; nr++) {
		send_with(pair[0], MESSAGE_PREPARED, nr);
		assert_int_equal(message_receive(pair[1], &m, &fd, 0), -EMFILE);
		assert_int_equal(fd, -1);
		assert_int_equal(count_descriptors(), before);
	}
	close(pair[0]);
	close(pair[1]);
}

/* SWAPPED and PONG bring none, whatever the router attaches. */
static void unwanted_descriptors(void **state)
{
	struct child ch = { .mount_ns = -1 };
	struct outcome o = { 0 };
	unsigned int before;
	int pair[2];

	(void)state;
	assert_int_equal(message_open_pair(pair), 0);
	ch.socket = pair[0];
	before = count_descriptors();
	send_with(pair[1], MESSAGE_PONG, 1);
	send_with(pair[1], MESSAGE_SWAPPED, 1);
	assert_int_equal(child_swap(&ch, &o), 0);
	assert_int_equal(count_descriptors(), before);
	send_with(pair[1], MESSAGE_PONG, 1);
	assert_int_equal(child_ping(&ch), 0);
	assert_int_equal(count_descriptors(), before);
	close(pair[0]);
	close(pair[1]);
	outcome_fini(&o);
}

static void pings(void **state)
{
	const struct message pong = { .type = MESSAGE_PONG };
	struct child ch = { .mount_ns = -1 };
	struct message m;
	int pair[2], fd;

	(void)state;
	assert_int_equal(message_open_pair(pair), 0);
	ch.socket = pair[0];
	assert_int_equal(child_ping(&ch), 0);
	assert_int_equal(child_ping(&ch), 1);
	assert_int_equal(child_ping(&ch), 2);
	/* silence is not asked again and again */
	assert_int_equal(message_receive(pair[1], &m, &fd, 0), 0);
	assert_int_equal(m.type, MESSAGE_PING);
	assert_int_equal(message_receive(pair[1], &m, &fd, 0), -EAGAIN);
	assert_int_equal(message_send(pair[1], &pong, -1), 0);
	assert_int_equal(child_ping(&ch), 0);
	assert_int_equal(message_receive(pair[1], &m, &fd, 0), 0);
	assert_int_equal(child_ping(&ch), 1);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_descriptor),
		cmocka_unit_test(too_many_descriptors),
		cmocka_unit_test(unwanted_descriptors),
		cmocka_unit_test(pings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
