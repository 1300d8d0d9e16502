// SPDX-License-Identifier: GPL-2.0-or-later
#include "pipe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	KEPT = 32,
	SIZE = 256 * 1024,     /* 64 of the 16384 pages that one user may have */
	SIZE_MIN = 64 * 1024,  /* what a user over that limit no longer gets */
	RETRY_MS = 1000,
};

static void close_pipe(struct pipe *pipe)
{
	close(pipe->read_fd);
	close(pipe->write_fd);
	free(pipe);
}

static struct pipe *open_pipe(void)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	int fds[2], size;

	if (!pipe)
		return NULL;
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC)) {
		free(pipe);
		return NULL;
	}
	pipe->read_fd = fds[0];
	pipe->write_fd = fds[1];
	size = fcntl(fds[1], F_SETPIPE_SZ, SIZE);
	if (size < 0)
		size = fcntl(fds[1], F_GETPIPE_SZ);
	if (size < SIZE_MIN) {
		close_pipe(pipe);
		return NULL;
	}
	pipe->size = (uint32_t)size;
	return pipe;
}

struct pipe *pipe_get(struct pipe_pool *p, uint64_t now_ms)
{
	struct pipe *pipe = p->idle;

	if (pipe) {
		p->idle = pipe->next;
		p->nr_idle--;
		return pipe;
	}
	if (now_ms < p->retry_at_ms)
		return NULL;
	pipe = open_pipe();
	if (!pipe)
		p->retry_at_ms = now_ms + RETRY_MS;
	return pipe;
}

void pipe_put(struct pipe_pool *p, struct pipe *pipe)
{
	if (!pipe)
		return;
	if (pipe->bytes || p->nr_idle == KEPT) {
		close_pipe(pipe);
		return;
	}
	pipe->next = p->idle;
	p->idle = pipe;
	p->nr_idle++;
}

void pipe_pool_trim(struct pipe_pool *p)
{
	while (p->idle) {
		struct pipe *next = p->idle->next;

		close_pipe(p->idle);
		p->idle = next;
	}
	p->nr_idle = 0;
}
