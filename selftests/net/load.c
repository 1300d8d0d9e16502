// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens connections at a steady rate, and serves them.
 *
 *   load serve ADDRESS PORT           reads something, says "ok", closes
 *   load run ADDRESS PORT HELLO RATE SECONDS
 *
 * `run` sends the file HELLO on each connection and wants "ok" and the end.
 * It prints one JSON object; a connection that got anything else is counted
 * by what went wrong. A connection that takes over 5 s has failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NR_FDS = 16384, GIVE_UP_US = 5000000, GIVE_UP_EVERY_US = 100000 };

enum failure { CONNECT, SEND, RESET, SHORT, TIMEOUT, SOCKET, NR_FAILURES };
static const char *const failure_names[NR_FAILURES] = {
	"connect", "send", "reset", "short", "timeout", "socket"
};

struct attempt {
	uint64_t started_us; /* 0: not in use */
	bool is_connected;
	unsigned int got;
};

struct load {
	int epoll;
	struct sockaddr_in to;
	char hello[65536];
	size_t hello_len;
	uint64_t started, ok, failed[NR_FAILURES], now_open, give_up_at_us;
	uint32_t *latency_us;
	size_t latency_max;
	struct attempt attempts[NR_FDS];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static struct sockaddr_in parse_address(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1) {
		fprintf(stderr, "not an IPv4 address: %s\n", host);
		exit(1);
	}
	return a;
}

static void watch(int epoll, int fd, uint32_t events, int op)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll, op, fd, &e))
		die("epoll_ctl");
}

static void attempt_end(struct load *l, int fd, int failure)
{
	struct attempt *a = &l->attempts[fd];
	uint64_t took = now_us() - a->started_us;

	if (failure >= 0)
		l->failed[failure]++;
	else if (l->ok++ < l->latency_max)
		l->latency_us[l->ok - 1] = (uint32_t)took;
	a->started_us = 0;
	l->now_open--;
	close(fd);
}

static void attempt_start(struct load *l)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	l->started++;
	if (fd < 0 || fd >= NR_FDS) {
		l->failed[SOCKET]++;
		if (fd >= 0)
			close(fd);
		return;
	}
	l->attempts[fd] = (struct attempt){ .started_us = now_us() };
	l->now_open++;
	if (connect(fd, (struct sockaddr *)&l->to, sizeof(l->to)) &&
	    errno != EINPROGRESS)
		return attempt_end(l, fd, CONNECT);
	watch(l->epoll, fd, EPOLLOUT, EPOLL_CTL_ADD);
}

static void attempt_send(struct load *l, int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error)
		return attempt_end(l, fd, CONNECT);
	if (send(fd, l->hello, l->hello_len, MSG_NOSIGNAL) !=
	    (ssize_t)l->hello_len)
		return attempt_end(l, fd, SEND);
	l->attempts[fd].is_connected = true;
	watch(l->epoll, fd, EPOLLIN, EPOLL_CTL_MOD);
}

static void attempt_read(struct load *l, int fd)
{
	struct attempt *a = &l->attempts[fd];
	char text[16];
	ssize_t n = recv(fd, text, sizeof(text), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		return attempt_end(l, fd, RESET);
	if (n == 0)
		return attempt_end(l, fd, a->got == 2 ? -1 : SHORT);
	a->got += (unsigned int)n;
}

static void turn(struct load *l)
{
	struct epoll_event events[256];
	int n = epoll_wait(l->epoll, events, 256, 1);

	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (l->attempts[fd].is_connected)
			attempt_read(l, fd);
		else
			attempt_send(l, fd);
	}
}

static void give_up(struct load *l, uint64_t now)
{
	if (now < l->give_up_at_us)
		return;
	l->give_up_at_us = now + GIVE_UP_EVERY_US;
	for (int fd = 0; fd < NR_FDS; fd++) {
		uint64_t started = l->attempts[fd].started_us;

		if (started && started + GIVE_UP_US < now)
			attempt_end(l, fd, TIMEOUT);
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(struct load *l)
{
	size_t n = l->ok < l->latency_max ? l->ok : l->latency_max;

	qsort(l->latency_us, n, sizeof(*l->latency_us), by_value);
	printf("{\"started\": %lu, \"ok\": %lu, \"failures\": {", l->started,
	       l->ok);
	for (int i = 0; i < NR_FAILURES; i++)
		printf("%s\"%s\": %lu", i ? ", " : "", failure_names[i],
		       l->failed[i]);
	printf("}, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u}\n",
	       n ? l->latency_us[n / 2] : 0,
	       n ? l->latency_us[n * 99 / 100] : 0,
	       n ? l->latency_us[n - 1] : 0);
}

static void read_hello(struct load *l, const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, l->hello, sizeof(l->hello));

	if (n < 0)
		die(path);
	l->hello_len = (size_t)n;
	close(fd);
}

static int run(char **argv)
{
	struct load *l = calloc(1, sizeof(*l));
	double rate = atof(argv[3]), seconds = atof(argv[4]);
	uint64_t start, end, now;

	l->to = parse_address(argv[0], argv[1]);
	read_hello(l, argv[2]);
	l->epoll = epoll_create1(0);
	l->latency_max = (size_t)(rate * seconds) + 1;
	l->latency_us = calloc(l->latency_max, sizeof(*l->latency_us));
	start = now_us();
	end = start + (uint64_t)(seconds * 1e6);
	while ((now = now_us()) < end || l->now_open) {
		uint64_t until = now < end ? now : end;
		double due = (double)(until - start) * rate / 1e6;

		while ((double)l->started < due)
			attempt_start(l);
		turn(l);
		give_up(l, now);
	}
	report(l);
	return 0;
}

/* The second visit of a connection: the client has seen our FIN. */
static void serve_one(int epoll, int fd, bool *has_answered)
{
	char buf[65536];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && !*has_answered) {
		*has_answered = true;
		if (send(fd, "ok", 2, MSG_NOSIGNAL) == 2) {
			shutdown(fd, SHUT_WR);
			return;
		}
	}
	if (n > 0)
		return;
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

static void serve(char **argv)
{
	static bool has_answered[NR_FDS];
	struct sockaddr_in at = parse_address(argv[0], argv[1]);
	int one = 1, epoll = epoll_create1(0);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 4096))
		die("listen");
	watch(epoll, listener, EPOLLIN, EPOLL_CTL_ADD);
	for (;;) {
		struct epoll_event events[256];
		int n = epoll_wait(epoll, events, 256, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd != listener) {
				serve_one(epoll, fd, &has_answered[fd]);
				continue;
			}
			fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
			if (fd < 0 || fd >= NR_FDS)
				continue;
			has_answered[fd] = false;
			watch(epoll, fd, EPOLLIN, EPOLL_CTL_ADD);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv + 2);
	if (argc == 7 && !strcmp(argv[1], "run"))
		return run(argv + 2);
	fprintf(stderr, "usage: load serve ADDRESS PORT\n"
			"       load run ADDRESS PORT HELLO RATE SECONDS\n");
	return 2;
}
