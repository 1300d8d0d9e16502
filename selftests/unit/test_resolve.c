// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of servers, against a DNS server that says what it is told. */
#include "unit.h"

#include <ares.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "clock.h"
#include "resolve.h"

#define SKIPPED 4

static FILE *dns_in, *dns_out;
static char dns_address[32];
static pid_t dns_pid;

static void start_dns(void)
{
	char source[] = __FILE__, script[512], port[16];
	int in[2], out[2];

	snprintf(script, sizeof(script), "%s/../net/dns_server.py",
		 dirname(source));
	if (access(script, R_OK)) {
		print_message("%s: run this from the top of the tree\n",
			      script);
		exit(1);
	}
	if (pipe(in) || pipe(out))
		exit(1);
	dns_pid = fork();
	if (!dns_pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("python3", "python3", script, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	dns_in = fdopen(in[1], "w");
	dns_out = fdopen(out[0], "r");
	if (!fgets(port, sizeof(port), dns_out)) {
		print_message("skipped: python3 did not start\n");
		exit(SKIPPED);
	}
	snprintf(dns_address, sizeof(dns_address), "127.0.0.1:%d", atoi(port));
}

static void stop_dns(void)
{
	fclose(dns_in);
	fclose(dns_out);
	waitpid(dns_pid, NULL, 0);
}

static const char *tell(const char *command)
{
	static char line[256];

	fprintf(dns_in, "%s\n", command);
	fflush(dns_in);
	assert_non_null(fgets(line, sizeof(line), dns_out));
	return line;
}

static void nr_queries(const char *name, unsigned int *udp, unsigned int *tcp)
{
	char command[128];

	snprintf(command, sizeof(command), "queries %s", name);
	assert_int_equal(sscanf(tell(command), "%u %u", udp, tcp), 2);
}

/* One backend whose servers are names; all of port 443. */
struct fixture {
	struct config config;
	struct config_backend backend;
	struct config_server servers[4];
	struct backend_set *set;
	struct resolver *resolver;
	unsigned int nr_answers, nr_errors;
	size_t nr; /* of the last answer */
	char error[128];
};

static void reported(void *context, const char *host,
		     const struct address *addresses, size_t nr,
		     const char *error)
{
	struct fixture *f = context;

	assert_non_null(host);
	if (error) {
		assert_null(addresses);
		f->nr_errors++;
		snprintf(f->error, sizeof(f->error), "%s", error);
		return;
	}
	assert_true(nr > 0);
	f->nr_answers++;
	f->nr = nr;
}

static void watch(struct fixture *f)
{
	struct backend_set *old = f->set;

	f->set = backend_set_new(&f->config, old);
	assert_non_null(f->set);
	assert_int_equal(resolve_watch(f->resolver, f->set), 0);
	backend_set_free(old);
	backend_collect();
}

static struct fixture *setup(const char *host)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->backend.name = (char *)"b";
	f->backend.servers = f->servers;
	f->backend.nr_servers = 1;
	f->servers[0].host = (char *)host;
	f->servers[0].address.port = 443;
	f->servers[0].weight = 1;
	f->config.backends = &f->backend;
	f->config.nr_backends = 1;
	f->resolver = resolve_new(reported, f);
	assert_non_null(f->resolver);
	assert_int_equal(resolve_set_servers(f->resolver, dns_address), 0);
	watch(f);
	return f;
}

static void teardown(struct fixture *f)
{
	resolve_free(f->resolver);
	backend_set_free(f->set);
	backend_collect();
	free(f);
}

/* Turns for that long, or until one more answer or error was reported. */
static unsigned int run(struct fixture *f, unsigned int ms)
{
	uint64_t begin = clock_ms(), now = begin;
	struct pollfd p = { .fd = resolve_fd(f->resolver), .events = POLLIN };
	unsigned int reports = f->nr_answers + f->nr_errors;

	while (now < begin + ms && f->nr_answers + f->nr_errors == reports) {
		if (poll(&p, 1, (int)(begin + ms - now)) > 0)
			resolve_turn(f->resolver);
		now = clock_ms();
	}
	return (unsigned int)(now - begin);
}

static void add_label(void *context, struct server *s)
{
	char *text = context;
	size_t len = strlen(text);

	snprintf(text + len, 4096 - len, "%s%s", len ? " " : "", s->label);
}

/* The servers of the pool, in its order. */
static const char *pool(struct fixture *f)
{
	static char text[4096];

	text[0] = '\0';
	backend_for_each(&f->set->backends[0], add_label, text);
	return text;
}

static void test_ttl_and_change(void **state)
{
	struct fixture *f;
	unsigned int udp, tcp, ms;

	(void)state;
	tell("answer ttl.test A 2 10.0.0.2 10.0.0.1");
	tell("answer ttl.test AAAA 2 2001:db8::1");
	f = setup("ttl.test");
	run(f, 3000);
	assert_string_equal(pool(f),
			    "10.0.0.1:443 10.0.0.2:443 [2001:db8::1]:443");
	/* A and AAAA, once each, until the TTL ends */
	run(f, 1500);
	nr_queries("ttl.test", &udp, &tcp);
	assert_int_equal(udp, 2);
	assert_int_equal(tcp, 0);
	run(f, 1000);
	nr_queries("ttl.test", &udp, &tcp);
	assert_int_equal(udp, 4);

	/* another order is no news, another address is */
	tell("answer ttl.test A 2 10.0.0.1 10.0.0.2");
	run(f, 2200);
	assert_int_equal(f->nr_answers, 1);
	tell("answer ttl.test A 2 10.0.0.1 10.0.0.3");
	ms = run(f, 3000);
	assert_int_equal(f->nr_answers, 2);
	assert_in_range(ms, 0, 2200);
	assert_string_equal(pool(f),
			    "10.0.0.1:443 10.0.0.3:443 [2001:db8::1]:443");
	assert_int_equal(f->nr_errors, 0);
	teardown(f);
}

/* A TTL of zero, and of a CNAME that is shorter than its target's. */
static void test_ttl_bounds(void **state)
{
	struct fixture *f;
	unsigned int udp, tcp;

	(void)state;
	tell("answer zero.test A 0 10.0.0.1");
	f = setup("zero.test");
	run(f, 3000);
	run(f, 2500);
	nr_queries("zero.test", &udp, &tcp);
	assert_in_range(udp, 6, 8); /* at 0, 1 and 2 s, two each */
	teardown(f);

	tell("answer target.test A 300 10.0.0.9");
	tell("alias alias.test 1 target.test");
	f = setup("alias.test");
	run(f, 3000);
	assert_string_equal(pool(f), "10.0.0.9:443");
	tell("answer target.test A 300 10.0.0.10");
	run(f, 2000);
	assert_string_equal(pool(f), "10.0.0.10:443");
	teardown(f);
}

static void test_failures_keep_the_answer(void **state)
{
	static const char *const failures[] = { "rcode fail.test nxdomain",
						"rcode fail.test servfail",
						"rcode fail.test refused",
						"silent fail.test" };
	unsigned int i, udp, tcp, before, ms;
	struct fixture *f;

	(void)state;
	for (i = 0; i < 4; i++) {
		tell("forget fail.test");
		tell("answer fail.test A 1 10.0.0.1");
		f = setup("fail.test");
		run(f, 3000);
		assert_string_equal(pool(f), "10.0.0.1:443");
		tell(failures[i]);
		run(f, 15000);
		assert_int_equal(f->nr_errors, 1);
		print_message("%s: %s\n", failures[i], f->error);
		assert_true(f->error[0]);
		assert_string_equal(pool(f), "10.0.0.1:443");

		/* recovery, with another address, within the first waits */
		nr_queries("fail.test", &before, &tcp);
		tell("answer fail.test A 60 10.0.0.2");
		ms = run(f, 10000);
		assert_in_range(ms, 0, 3000);
		assert_int_equal(f->nr_errors, 1);
		assert_string_equal(pool(f), "10.0.0.2:443");
		nr_queries("fail.test", &udp, &tcp);
		assert_true(udp > before);
		teardown(f);
	}
}

/* Asked again after 1, 2, 4 s, and one report for the whole run. */
static void test_backoff(void **state)
{
	struct fixture *f;
	unsigned int udp, tcp;

	(void)state;
	tell("rcode gone.test nxdomain");
	f = setup("gone.test");
	run(f, 2000);
	assert_int_equal(f->nr_errors, 1);
	assert_string_equal(pool(f), "");
	run(f, 5000);
	assert_int_equal(f->nr_errors, 1);
	nr_queries("gone.test", &udp, &tcp);
	/* at 0, 1 and 3 s; two queries each, without a search list */
	assert_in_range(udp, 6, 6);
	teardown(f);
}

/* No reply to one of the two: that family is not forgotten at once. */
static void test_lost_family(void **state)
{
	struct fixture *f;
	unsigned int ms;

	(void)state;
	tell("answer two.test A 1 10.0.0.1");
	tell("answer two.test AAAA 1 2001:db8::1");
	f = setup("two.test");
	run(f, 3000);
	assert_string_equal(pool(f), "10.0.0.1:443 [2001:db8::1]:443");
	tell("silent two.test AAAA");
	run(f, 4500);
	assert_int_equal(f->nr_answers + f->nr_errors, 1);
	tell("answer two.test AAAA 1 2001:db8::1");
	run(f, 5000);
	assert_int_equal(f->nr_answers + f->nr_errors, 1);
	assert_string_equal(pool(f), "10.0.0.1:443 [2001:db8::1]:443");

	/* gone for good: believed when it was seen three times */
	tell("nodata two.test AAAA");
	ms = run(f, 8000);
	assert_int_equal(f->nr_answers, 2);
	assert_in_range(ms, 2500, 5000);
	assert_string_equal(pool(f), "10.0.0.1:443");
	/* and back */
	tell("answer two.test AAAA 1 2001:db8::2");
	run(f, 3000);
	assert_string_equal(pool(f), "10.0.0.1:443 [2001:db8::2]:443");
	assert_int_equal(f->nr_errors, 0);
	teardown(f);
}

/* Too long for UDP, and more than a pool takes. */
static void test_tcp_and_many(void **state)
{
	struct fixture *f;
	char command[4096] = "answer many.test A 60";
	unsigned int udp, tcp, i;

	(void)state;
	for (i = 100; i; i--)
		snprintf(command + strlen(command), 32, " 10.0.1.%u", i);
	tell(command);
	tell("nodata many.test AAAA");
	f = setup("many.test");
	run(f, 3000);
	nr_queries("many.test", &udp, &tcp);
	assert_true(tcp >= 1);
	assert_int_equal(f->nr, ANSWER_ADDRESSES_MAX);
	assert_non_null(strstr(pool(f), "10.0.1.1:443 10.0.1.2:443"));
	assert_non_null(strstr(pool(f), "10.0.1.64:443"));
	assert_null(strstr(pool(f), "10.0.1.65:443"));
	teardown(f);

	tell("answer tc.test A 60 10.0.0.1");
	tell("truncate tc.test");
	f = setup("tc.test");
	run(f, 3000);
	assert_string_equal(pool(f), "10.0.0.1:443");
	teardown(f);
}

/* Mapped addresses are IPv4; some mean nothing, or this host. */
static void test_odd_addresses(void **state)
{
	struct fixture *f;

	(void)state;
	tell("answer odd.test A 60 0.0.0.0 224.0.0.1 10.0.0.7");
	tell("answer odd.test AAAA 60 ::ffff:10.0.0.7 ::ffff:10.0.0.8 :: "
	     "ff02::1");
	f = setup("odd.test");
	run(f, 3000);
	assert_string_equal(pool(f), "10.0.0.7:443 10.0.0.8:443");
	teardown(f);

	tell("answer none.test A 60 0.0.0.0");
	f = setup("none.test");
	run(f, 3000);
	assert_int_equal(f->nr_errors, 1);
	assert_string_equal(f->error, "No usable address");
	teardown(f);
}

/* localhost is in /etc/hosts of every host, and no server is asked. */
static void test_hosts_file(void **state)
{
	struct fixture *f = setup("localhost");
	unsigned int udp, tcp;

	(void)state;
	/* at once: before the first turn */
	assert_int_equal(f->nr_answers, 1);
	assert_non_null(strstr(pool(f), "127.0.0.1:443"));
	nr_queries("localhost", &udp, &tcp);
	assert_int_equal(udp + tcp, 0);
	teardown(f);
}

static void test_reload(void **state)
{
	struct fixture *f;
	unsigned int before, udp, tcp;

	(void)state;
	tell("answer one.test A 60 10.0.0.1");
	tell("answer other.test A 60 10.0.0.2");
	f = setup("one.test");
	run(f, 3000);

	/* the same name again, and once more in another place and case */
	f->servers[1] = f->servers[0];
	f->servers[1].host = (char *)"ONE.test";
	f->servers[1].address.port = 8443;
	f->backend.nr_servers = 2;
	nr_queries("one.test", &before, &tcp);
	watch(f);
	assert_string_equal(pool(f), "10.0.0.1:443 10.0.0.1:8443");
	run(f, 300);
	nr_queries("one.test", &udp, &tcp);
	assert_int_equal(udp, before);

	/* a name goes while it is being asked for, and another comes */
	tell("silent slow.test");
	f->servers[1].host = (char *)"slow.test";
	watch(f);
	run(f, 200);
	f->servers[1].host = (char *)"other.test";
	watch(f);
	run(f, 3000);
	assert_string_equal(pool(f), "10.0.0.1:443 10.0.0.2:8443");
	run(f, 3500); /* the query ends, and nobody wants to know */
	assert_int_equal(f->nr_errors, 0);

	/* watched no more: the set may go */
	assert_int_equal(resolve_watch(f->resolver, NULL), 0);
	backend_set_free(f->set);
	f->set = NULL;
	tell("answer other.test A 60 10.0.0.3");
	run(f, 200);
	watch(f);
	run(f, 3000);
	run(f, 3000); /* one name, and the other */
	assert_string_equal(pool(f), "10.0.0.1:443 10.0.0.3:8443");

	/* freed while a query is under way */
	f->servers[1].host = (char *)"slow.test";
	watch(f);
	run(f, 100);
	teardown(f);
	resolve_free(NULL);
}

/* In order, each once; of too many the highest give way. */
static void test_answer_order(void **state)
{
	struct answer a = { .nr = 0 }, b = { .nr = 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		struct address x = { .family = AF_INET };

		x.v4.s_addr = htonl(i * 77 % 200);
		answer_add(&a, &x);
		answer_add(&a, &x);
		x.v4.s_addr = htonl(199 - i);
		answer_add(&b, &x);
	}
	assert_int_equal(a.nr, ANSWER_ADDRESSES_MAX);
	for (i = 0; i < a.nr; i++)
		assert_int_equal(ntohl(a.list[i].v4.s_addr), i);
	assert_true(answer_equal(&a, &b));
	b.nr--;
	assert_false(answer_equal(&a, &b));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer_order),
		cmocka_unit_test(test_hosts_file),
		cmocka_unit_test(test_ttl_and_change),
		cmocka_unit_test(test_ttl_bounds),
		cmocka_unit_test(test_failures_keep_the_answer),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_lost_family),
		cmocka_unit_test(test_tcp_and_many),
		cmocka_unit_test(test_odd_addresses),
		cmocka_unit_test(test_reload),
	};
	int err;

	signal(SIGPIPE, SIG_IGN);
	start_dns();
	print_message("c-ares %s\n", ares_version(NULL));
	err = cmocka_run_group_tests(tests, NULL, NULL);
	stop_dns();
	return err;
}
