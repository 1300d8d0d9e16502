// SPDX-License-Identifier: GPL-2.0-or-later
/* Health checks against real listeners on loopback. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "health.h"

#define MAX_SERVERS 400

struct fixture {
	struct config config;
	struct config_backend backend;
	struct config_server servers[MAX_SERVERS];
	struct backend_set *set;
	struct health *health;
	unsigned int nr_changes;
	char last_change[256];
};

static void changed(void *context, const struct server *s, bool is_down,
		    const char *why)
{
	struct fixture *f = context;

	assert_int_equal(s->is_down, is_down);
	f->nr_changes++;
	snprintf(f->last_change, sizeof(f->last_change), "%s %s: %s", s->label,
		 is_down ? "down" : "up", why);
}

static struct fixture *setup(unsigned int interval_ms, unsigned int timeout_ms,
			     unsigned int rise, unsigned int fall)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->backend.name = (char *)"b";
	f->backend.servers = f->servers;
	f->backend.check = (struct config_check){
		.is_on = true,
		.interval_ms = interval_ms,
		.timeout_ms = timeout_ms,
		.rise = rise,
		.fall = fall,
	};
	f->config.backends = &f->backend;
	f->config.nr_backends = 1;
	f->health = health_new(changed, f);
	assert_non_null(f->health);
	return f;
}

static void add_address(struct fixture *f, uint32_t ip, uint16_t port)
{
	f->servers[f->backend.nr_servers++] = (struct config_server){
		.address = { .family = AF_INET,
			     .port = port,
			     .v4.s_addr = htonl(ip) },
		.weight = 1,
	};
}

/* Builds the set anew, as a reload does. */
static void watch(struct fixture *f)
{
	struct backend_set *old = f->set;

	f->set = backend_set_new(&f->config, old);
	assert_non_null(f->set);
	assert_int_equal(health_watch(f->health, f->set), 0);
	backend_set_free(old);
	backend_collect();
}

static void teardown(struct fixture *f)
{
	health_free(f->health);
	backend_set_free(f->set);
	backend_collect();
	free(f);
}

static void keep_first(void *context, struct server *s)
{
	struct server **first = context;

	if (!*first)
		*first = s;
}

static struct server *first_server(struct fixture *f)
{
	struct server *s = NULL;

	backend_for_each(&f->set->backends[0], keep_first, &s);
	assert_non_null(s);
	return s;
}

/* Turns for that long, or until there were that many changes. */
static unsigned int run(struct fixture *f, unsigned int ms,
			unsigned int nr_changes)
{
	uint64_t begin = clock_ms(), now = begin;
	struct pollfd p = { .fd = health_fd(f->health), .events = POLLIN };

	while (now < begin + ms && f->nr_changes < nr_changes) {
		if (poll(&p, 1, (int)(begin + ms - now)) > 0)
			health_turn(f->health);
		now = clock_ms();
	}
	return (unsigned int)(now - begin);
}

#define NEVER 1000000

static int listen_on(uint32_t ip, uint16_t *port, int backlog)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(*port),
				 .sin_addr.s_addr = htonl(ip) };
	socklen_t len = sizeof(a);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	getsockname(fd, (struct sockaddr *)&a, &len);
	*port = ntohs(a.sin_port);
	return fd;
}

static unsigned int nr_time_wait(uint16_t port)
{
	FILE *file = fopen("/proc/net/tcp", "r");
	unsigned int local, remote, state, nr = 0;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %*u: %*x:%x %*x:%x %x", &local, &remote,
			   &state) == 3)
			nr += state == 6 && (local == port || remote == port);
	fclose(file);
	return nr;
}

static void test_dies_and_comes_back(void **state)
{
	struct fixture *f = setup(100, 100, 2, 3);
	uint16_t port = 0;
	int fd = listen_on(INADDR_LOOPBACK, &port, 64);
	unsigned int ms;
	struct server *s;

	(void)state;
	add_address(f, INADDR_LOOPBACK, port);
	watch(f);
	s = first_server(f);
	run(f, 500, NEVER);
	assert_int_equal(f->nr_changes, 0);

	close(fd);
	ms = run(f, 3000, 1);
	assert_int_equal(f->nr_changes, 1);
	assert_true(s->is_down);
	assert_in_range(ms, 150, 700); /* three in a row, not one */
	assert_non_null(strstr(f->last_change, "down: Connection refused"));
	run(f, 400, NEVER);
	assert_int_equal(f->nr_changes, 1);

	fd = listen_on(INADDR_LOOPBACK, &port, 64);
	ms = run(f, 3000, 2);
	assert_int_equal(f->nr_changes, 2);
	assert_false(s->is_down);
	assert_in_range(ms, 70, 500); /* two in a row */
	assert_non_null(strstr(f->last_change, " up: Check passed"));
	close(fd);
	teardown(f);
}

/* Checks pass, and yet the program never sees one; no TIME_WAIT is left. */
static void test_is_not_seen(void **state)
{
	struct fixture *f = setup(50, 100, 1, 1);
	uint16_t port = 0;
	int fd = listen_on(INADDR_LOOPBACK, &port, 64), client;
	struct server *s;
	unsigned int i;

	(void)state;
	add_address(f, INADDR_LOOPBACK, port);
	watch(f);
	s = first_server(f);
	for (i = 0; i < 5; i++) {
		server_mark_failure(s, 1);
		run(f, 150, NEVER);
		/* cleared by a check that passed, and by nothing else here */
		assert_int_equal(s->failed_at_ms, 0);
	}
	assert_int_equal(accept(fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(nr_time_wait(port), 0);

	/* the control: a plain connect is seen, and leaves one */
	struct sockaddr_storage to = s->sockaddr.storage;

	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in)),
			 0);
	close(client);
	client = accept(fd, NULL, NULL);
	assert_true(client >= 0);
	close(client);
	assert_int_equal(nr_time_wait(port), 1);
	close(fd);
	teardown(f);
}

/* A server whose queue is full does not answer a SYN. */
static int fill_backlog(int listener, uint16_t port, int *clients, int nr)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int i;

	(void)listener;
	for (i = 0; i < nr; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(clients[i], (struct sockaddr *)&a, sizeof(a)))
			assert_int_equal(errno, EINPROGRESS);
	}
	usleep(20000);
	return nr;
}

static void close_all(int *fds, int nr)
{
	while (nr)
		close(fds[--nr]);
}

static void test_unresponsive(void **state)
{
	struct fixture *f = setup(100, 200, 1, 2);
	uint16_t port = 0;
	int clients[4], fd = listen_on(INADDR_ANY, &port, 0), nr;
	unsigned int ms;

	(void)state;
	nr = fill_backlog(fd, port, clients, 4);
	add_address(f, INADDR_LOOPBACK, port);
	watch(f);
	ms = run(f, 4000, 1);
	assert_int_equal(f->nr_changes, 1);
	assert_true(first_server(f)->is_down);
	assert_non_null(strstr(f->last_change, "Connection timed out"));
	assert_in_range(ms, 400, 1200); /* two timeouts */

	/* room again */
	close_all(clients, nr);
	while ((nr = accept(fd, NULL, NULL)) >= 0)
		close(nr);
	run(f, 4000, 2);
	assert_int_equal(f->nr_changes, 2);
	assert_false(first_server(f)->is_down);
	close(fd);
	teardown(f);
}

static unsigned int nr_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Hundreds of servers that hang hold a bounded number of descriptors. */
static void test_descriptors_are_bounded(void **state)
{
	struct fixture *f = setup(100, 700, 1, 1);
	uint16_t port = 0;
	int clients[4], fd = listen_on(INADDR_ANY, &port, 0), nr;
	unsigned int i, most = 0, before;

	(void)state;
	nr = fill_backlog(fd, port, clients, 4);
	for (i = 0; i < MAX_SERVERS; i++)
		add_address(f, 0x7f000100 + i, port);
	watch(f);
	before = nr_descriptors();
	for (i = 0; i < 300 && f->nr_changes < MAX_SERVERS; i++) {
		unsigned int now;

		run(f, 20, NEVER);
		now = nr_descriptors() - before;
		most = now > most ? now : most;
	}
	assert_int_equal(f->nr_changes, MAX_SERVERS);
	assert_in_range(most, 200, 256);
	close_all(clients, nr);
	close(fd);
	teardown(f);
}

static int listen_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1024), 0);
	return fd;
}

static void test_unix(void **state)
{
	struct fixture *f = setup(100, 100, 1, 1);
	char dir[] = "/tmp/headgate-health-XXXXXX", path[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.sock", dir);
	f->servers[0].unix_path = path;
	f->backend.nr_servers = 1;
	watch(f);
	run(f, 2000, 1);
	assert_true(first_server(f)->is_down);
	assert_non_null(strstr(f->last_change, "No such file"));
	fd = listen_unix(path);
	run(f, 2000, 2);
	assert_false(first_server(f)->is_down);
	close(fd);
	run(f, 2000, 3);
	assert_true(first_server(f)->is_down);
	assert_non_null(strstr(f->last_change, "Connection refused"));
	unlink(path);
	rmdir(dir);
	teardown(f);
}

/* A failure now and then is not `fall` failures in a row. */
static void test_streaks(void **state)
{
	struct fixture *f = setup(100, 100, 3, 3);
	char dir[] = "/tmp/headgate-health-XXXXXX", path[64], away[64];
	unsigned int i;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.sock", dir);
	snprintf(away, sizeof(away), "%s/b.sock", dir);
	fd = listen_unix(path);
	f->servers[0].unix_path = path;
	f->backend.nr_servers = 1;
	watch(f);
	run(f, 300, NEVER);
	for (i = 0; i < 6; i++) {
		rename(path, away); /* one check fails, or two */
		run(f, 150, NEVER);
		rename(away, path);
		run(f, 250, NEVER);
	}
	assert_int_equal(f->nr_changes, 0);
	/* the control: for as long in one piece */
	rename(path, away);
	run(f, 6 * 150, 1);
	assert_int_equal(f->nr_changes, 1);
	/* and the same on the way up */
	for (i = 0; i < 6; i++) {
		rename(away, path);
		run(f, 150, NEVER);
		rename(path, away);
		run(f, 250, NEVER);
	}
	assert_int_equal(f->nr_changes, 1);
	rename(away, path);
	run(f, 6 * 150, 2);
	assert_int_equal(f->nr_changes, 2);
	close(fd);
	unlink(path);
	rmdir(dir);
	teardown(f);
}

/* Many servers with the same interval are not checked in one instant. */
static void test_spread(void **state)
{
	struct fixture *f = setup(1000, 100, 1, 1);
	char dir[] = "/tmp/headgate-health-XXXXXX", names[200][64], path[64];
	unsigned int i, slots[20] = { 0 }, most = 0, sum = 0;
	int fd, conn;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.sock", dir);
	fd = listen_unix(path);
	for (i = 0; i < 200; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%u", dir, i);
		assert_int_equal(symlink("a.sock", names[i]), 0);
		f->servers[i].unix_path = names[i];
	}
	f->backend.nr_servers = 200;
	watch(f);
	for (i = 0; i < 20; i++) {
		run(f, 100, NEVER);
		while ((conn = accept(fd, NULL, NULL)) >= 0) {
			close(conn);
			slots[i]++;
		}
		sum += slots[i];
		most = slots[i] > most ? slots[i] : most;
	}
	assert_in_range(sum, 340, 440);
	assert_in_range(most, 20, 60);
	for (i = 0; i < 200; i++)
		unlink(names[i]);
	close(fd);
	unlink(path);
	rmdir(dir);
	teardown(f);
}

/* Out of descriptors: that is no fault of the server. */
static void test_own_shortage(void **state)
{
	struct fixture *f = setup(100, 100, 1, 1);
	struct rlimit limit, none;
	uint16_t port = 0;
	int fd = listen_on(INADDR_LOOPBACK, &port, 64);

	(void)state;
	add_address(f, INADDR_LOOPBACK, port);
	watch(f);
	run(f, 200, NEVER);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	close(fd); /* a check would fail by now, if it could be made */
	run(f, 500, NEVER);
	assert_int_equal(f->nr_changes, 0);
	setrlimit(RLIMIT_NOFILE, &limit);
	run(f, 1000, 1);
	assert_int_equal(f->nr_changes, 1);
	teardown(f);
}

static void test_reload(void **state)
{
	struct fixture *f = setup(100, 100, 1, 2);
	uint16_t dead = 0, port = 0;
	int fd = listen_on(INADDR_LOOPBACK, &port, 64);
	struct server *s;

	(void)state;
	close(listen_on(INADDR_LOOPBACK, &dead, 1));
	add_address(f, INADDR_LOOPBACK, dead);
	add_address(f, INADDR_LOOPBACK, port);
	watch(f);
	s = first_server(f);
	run(f, 2000, 1);
	assert_true(s->is_down);

	/* the same again: down it stays, without another change */
	watch(f);
	assert_ptr_equal(first_server(f), s);
	assert_true(s->is_down);
	run(f, 300, NEVER);
	assert_int_equal(f->nr_changes, 1);

	/* no check: nobody knows that it is down */
	f->backend.check.is_on = false;
	watch(f);
	assert_false(s->is_down);
	run(f, 300, NEVER);
	assert_int_equal(f->nr_changes, 1);

	/* checked anew; and not at all again */
	f->backend.check.is_on = true;
	watch(f);
	run(f, 2000, 2);
	assert_true(s->is_down);
	assert_int_equal(health_watch(f->health, NULL), 0);
	assert_false(s->is_down);

	/* and once more; then it leaves */
	f->nr_changes = 1;
	watch(f);
	run(f, 2000, 2);
	assert_true(s->is_down);
	f->servers[0] = f->servers[1];
	f->backend.nr_servers = 1;
	watch(f);
	run(f, 300, NEVER);
	assert_int_equal(f->nr_changes, 2);
	close(fd);
	teardown(f);
}

/* A pool that changed between two reloads, as when a name is resolved. */
static void test_pool_changes(void **state)
{
	struct fixture *f = setup(100, 100, 1, 1);
	struct address list[2] = {
		{ .family = AF_INET, .v4.s_addr = htonl(0x7f000001) },
		{ .family = AF_INET, .v4.s_addr = htonl(0x7f000002) },
	};
	uint16_t port = 0;

	(void)state;
	close(listen_on(INADDR_LOOPBACK, &port, 1));
	f->servers[0].host = (char *)"app.example.org";
	f->servers[0].address.port = port;
	f->backend.nr_servers = 1;
	watch(f);
	run(f, 300, NEVER);
	assert_int_equal(f->nr_changes, 0);
	backend_set_addresses(&f->set->backends[0], 0, list, 2);
	assert_int_equal(health_watch(f->health, f->set), 0);
	backend_collect();
	run(f, 2000, 2);
	assert_int_equal(f->nr_changes, 2);
	backend_set_addresses(&f->set->backends[0], 0, list + 1, 1);
	/* collected while its check still holds it: nothing happens */
	backend_collect();
	run(f, 300, NEVER);
	assert_int_equal(health_watch(f->health, f->set), 0);
	backend_collect();
	run(f, 300, NEVER);
	assert_int_equal(f->nr_changes, 2);
	teardown(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dies_and_comes_back),
		cmocka_unit_test(test_is_not_seen),
		cmocka_unit_test(test_unresponsive),
		cmocka_unit_test(test_descriptors_are_bounded),
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_streaks),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_own_shortage),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_pool_changes),
	};

	health_free(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
