/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: each client writes one line, a word or a JSON object
 * like {"command": "status"}, and gets one answer. A client has two seconds
 * for its line of at most 4 KiB, and there are 16 of them at a time.
 */
#ifndef HEADGATE_CONTROL_H
#define HEADGATE_CONTROL_H

#include <sys/types.h>

#include "reply.h"

enum control_command { CONTROL_STATUS, CONTROL_RELOAD };

/*
 * Called with a client that has asked. The callee answers by control_reply()
 * or passes the client on, and closes `fd`.
 */
typedef void control_fn(void *context, enum control_command command, int fd);

struct control;

/* Binds it: owner root, group `gid`, mode 0660. NULL with errno set. */
struct control *control_new(const char *path, gid_t gid, control_fn *fn,
			    void *context);
void control_free(struct control *c);

/* Watch control_fd() for EPOLLIN, then let it take its turn. */
int control_fd(const struct control *c);
void control_turn(struct control *c);

/* See reply_send(). */
void control_reply(struct control *c, int fd, char *text);

#endif
