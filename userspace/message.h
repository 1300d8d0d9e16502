/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the supervisor and the router say to each other: messages of one size
 * over a SOCK_SEQPACKET pair, at most one descriptor with each.
 *
 *   supervisor                                router
 *                    <- JAILED (its mount namespace)
 *   CONFIG (text), LISTENER (socket) ..., PREPARE ->
 *                    <- PREPARED, or FAILED: nothing has changed
 *   SWAP ->          <- SWAPPED, or FAILED
 *   STATUS (client) ->                        answers the client itself
 *   DRAIN ->                                  exits when it is done
 *   PING ->          <- PONG, also in between the others' answers
 */
#ifndef HEADGATE_MESSAGE_H
#define HEADGATE_MESSAGE_H

#include <stdint.h>

enum message_type {
	MESSAGE_JAILED = 1, /* fd: of /proc/self/ns/mnt, or none: no jail */
	MESSAGE_CONFIG,	    /* fd: a sealed memfd with the flat text */
	MESSAGE_LISTENER,   /* fd: a listening socket */
	MESSAGE_PREPARE,    /* build all that is new */
	MESSAGE_PREPARED,
	MESSAGE_SWAP, /* and let it be in force */
	MESSAGE_SWAPPED,
	MESSAGE_FAILED, /* text: why */
	MESSAGE_STATUS, /* fd: a client of the control socket */
	MESSAGE_DRAIN,
	MESSAGE_PING,
	MESSAGE_PONG,
};

struct message {
	uint32_t type;
	uint32_t generation;  /* CONFIG, STATUS: of the configuration */
	uint32_t listen;      /* LISTENER: its place among the listen lines */
	uint32_t transport;   /* LISTENER: one TRANSPORT_ bit */
	uint32_t worker;      /* LISTENER: whose socket it is */
	uint32_t restarts;    /* STATUS: of the router, so far */
	uint64_t deadline_ms; /* DRAIN: CLOCK_MONOTONIC */
	char text[480];
};

/* Two connected sockets. 0 or -errno. */
int message_open_pair(int fds[2]);

/*
 * `fd` is -1 for none; it stays the caller's. -EAGAIN: the other side has not
 * made room for five seconds.
 */
int message_send(int socket, const struct message *m, int fd);

/*
 * The next message and its descriptor (or -1), which the caller owns then.
 * -EAGAIN: none came for that long; -EPIPE: the other side is gone; -EPROTO:
 * not a message; -EMFILE: its descriptor found no place here, or there was more
 * than one.
 */
int message_receive(int socket, struct message *m, int *fd, int timeout_ms);

#endif
