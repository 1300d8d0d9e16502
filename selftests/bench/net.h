/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets, the same for the generator, the origin and the bare loop. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A benchmark has no way on after an error: a turn that met one is void. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void
die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline struct sockaddr_in net_address(const char *text)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";
	int port;

	if (colon && (size_t)(colon - text) < sizeof(host))
		memcpy(host, text, (size_t)(colon - text));
	port = colon ? atoi(colon + 1) : 0;
	if (port <= 0 || port > 65535 ||
	    inet_pton(AF_INET, host, &sa.sin_addr) != 1)
		die("%s: expected ADDRESS:PORT, IPv4", text);
	sa.sin_port = htons((uint16_t)port);
	return sa;
}

static inline void net_nodelay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static inline int net_listen(const struct sockaddr_in *sa)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)sa, sizeof(*sa)) ||
	    listen(fd, 65535))
		die("listen: %s", strerror(errno));
	return fd;
}

/* Non-blocking; on loopback it is connected by the time this returns. */
static inline int net_connect(const struct sockaddr_in *sa)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		die("socket: %s", strerror(errno));
	net_nodelay(fd);
	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) &&
	    errno != EINPROGRESS)
		die("connect: %s", strerror(errno));
	return fd;
}

static inline void net_watch(int ep, int how, int fd, uint32_t events,
			     void *what)
{
	struct epoll_event ev = { .events = events, .data.ptr = what };

	if (epoll_ctl(ep, how, fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

static inline void net_raise_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

#endif
