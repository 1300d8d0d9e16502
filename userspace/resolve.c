// SPDX-License-Identifier: GPL-2.0-or-later
#include "resolve.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "answer.h"
#include "clock.h"
#include "ticker.h"

#define RETRY_MIN_MS	 1000
#define RETRY_MAX_MS	 30000
#define QUERY_TIMEOUT_MS 1000 /* of the first try, and then twice that */
#define QUERY_TRIES	 2
/* As DNS flag day 2020 has it: no fragments on the way. */
#define UDP_PAYLOAD 1232
#define DOUBTS_MAX  2
#define EVENTS	    32

/* A server of a backend that is known by this name. */
struct use {
	struct backend *backend;
	unsigned int server_index;
};

struct name {
	struct timer timer; /* first: the wheel hands it back */
	struct name *next;
	struct resolver *resolver;
	struct use *uses;
	size_t nr_uses, max_uses;
	struct answer known;	  /* the last good one */
	unsigned int nr_failures; /* in a row */
	bool is_asked;
	unsigned int nr_doubts; /* answers in a row that lacked a family */
	char host[];
};

struct resolver {
	struct ticker ticker;
	struct ares_channeldata *channel;
	struct timer ares_timer;
	struct name *names;
	resolve_report_fn *report;
	void *context;
};

static int apply(const struct name *n, const struct answer *a)
{
	int err = 0;
	size_t i;

	for (i = 0; i < n->nr_uses && !err; i++)
		err = backend_set_addresses(n->uses[i].backend,
					    n->uses[i].server_index, a->list,
					    a->nr);
	return err;
}

static void ask_again(struct name *n, uint64_t after_ms)
{
	timer_arm(&n->resolver->ticker.wheel, &n->timer,
		  clock_ms() + after_ms);
}

static void take_failure(struct name *n, const char *why)
{
	struct resolver *r = n->resolver;
	uint64_t wait_ms = RETRY_MAX_MS;

	if (n->nr_failures < 5)
		wait_ms = (uint64_t)RETRY_MIN_MS << n->nr_failures;
	ask_again(n, wait_ms);
	if (n->nr_failures++ == 0)
		r->report(r->context, n->host, NULL, 0, why);
}

/*
 * A and AAAA are two queries, and when the reply to one is lost the answer
 * looks as if the name had no such addresses. So a family that goes missing
 * is kept until more answers, soon after, say the same.
 */
static void doubt(struct name *n, struct answer *a)
{
	bool is_lost = answer_has_lost(a, &n->known, AF_INET) ||
		       answer_has_lost(a, &n->known, AF_INET6);

	if (!is_lost || n->nr_doubts == DOUBTS_MAX) {
		n->nr_doubts = 0;
		return;
	}
	answer_add_lost(a, &n->known);
	a->ttl_s = RETRY_MIN_MS / 1000 << n->nr_doubts++;
}

static void take_answer(struct name *n, struct answer *a)
{
	struct resolver *r = n->resolver;
	bool is_news;

	doubt(n, a);
	if (apply(n, a)) {
		take_failure(n, strerror(ENOMEM));
		return;
	}
	is_news = n->nr_failures || !answer_equal(a, &n->known);
	n->known = *a;
	n->nr_failures = 0;
	ask_again(n, (uint64_t)a->ttl_s * 1000);
	if (is_news)
		r->report(r->context, n->host, a->list, a->nr, NULL);
}

static void answered(void *arg, int status, int timeouts,
		     struct ares_addrinfo *info)
{
	struct name *n = arg;
	struct answer a = { .nr = 0 };

	(void)timeouts;
	n->is_asked = false;
	/* the resolver is going, or the name went out of use meanwhile */
	if (status == ARES_EDESTRUCTION || !n->nr_uses)
		goto out;
	if (status == ARES_SUCCESS)
		answer_read(&a, info);
	if (a.nr)
		take_answer(n, &a);
	else if (status == ARES_SUCCESS)
		take_failure(n, "No usable address");
	else
		take_failure(n, ares_strerror(status));
out:
	ares_freeaddrinfo(info);
}

/* Without sorting: c-ares would open a socket for each address for it. */
static void ask(struct name *n)
{
	static const struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NOSORT,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};

	n->is_asked = true;
	ares_getaddrinfo(n->resolver->channel, n->host, NULL, &hints, answered,
			 n);
}

/* c-ares' own timeouts, which change with whatever it was told. */
static void arm_ares_timer(struct resolver *r)
{
	struct timeval tv;

	timer_cancel(&r->ticker.wheel, &r->ares_timer);
	if (!ares_timeout(r->channel, NULL, &tv))
		return;
	timer_arm(&r->ticker.wheel, &r->ares_timer,
		  clock_ms() + (uint64_t)tv.tv_sec * 1000 +
			  (uint64_t)tv.tv_usec / 1000 + 1);
}

static void timer_due(void *context, struct timer *t)
{
	struct resolver *r = context;

	if (t == &r->ares_timer)
		ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	else
		ask((struct name *)t);
}

void resolve_turn(struct resolver *r)
{
	struct epoll_event events[EVENTS];
	int i, nr = epoll_wait(r->ticker.epoll_fd, events, EVENTS, 0);

	for (i = 0; i < nr; i++) {
		uint32_t ready = events[i].events;
		int fd = (int)events[i].data.u64 - 1;

		if (fd < 0)
			continue;
		ares_process_fd(r->channel,
				ready & ~(uint32_t)EPOLLOUT ? fd
							    : ARES_SOCKET_BAD,
				ready & EPOLLOUT ? fd : ARES_SOCKET_BAD);
	}
	ticker_expire(&r->ticker, timer_due, r);
	arm_ares_timer(r);
	ticker_wind(&r->ticker);
}

/* The mark is the descriptor and one: zero is the ticker's. */
static void watch_socket(void *data, ares_socket_t fd, int is_reading,
			 int is_writing)
{
	struct resolver *r = data;
	struct epoll_event event = { .data.u64 = (uint64_t)fd + 1 };

	if (is_reading)
		event.events |= EPOLLIN;
	if (is_writing)
		event.events |= EPOLLOUT;
	if (!event.events)
		epoll_ctl(r->ticker.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(r->ticker.epoll_fd, EPOLL_CTL_MOD, fd, &event))
		epoll_ctl(r->ticker.epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_channel(struct resolver *r)
{
	char lookups[] = "fb"; /* /etc/hosts, then DNS */
	struct ares_options options = {
		.flags = ARES_FLAG_EDNS,
		.timeout = QUERY_TIMEOUT_MS,
		.tries = QUERY_TRIES,
		.ednspsz = UDP_PAYLOAD,
		.lookups = lookups,
		.sock_state_cb = watch_socket,
		.sock_state_cb_data = r,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
		   ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;

#ifdef ARES_OPT_QUERY_CACHE
	/* a cached failure would outlast the retries (c-ares 1.31 and later) */
	mask |= ARES_OPT_QUERY_CACHE;
	options.qcache_max_ttl = 0;
#endif
	if (ares_library_init(ARES_LIB_INIT_ALL))
		return -ENOMEM;
	if (!ares_init_options(&r->channel, &options, mask))
		return 0;
	ares_library_cleanup();
	return -EIO;
}

struct resolver *resolve_new(resolve_report_fn *report, void *context)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->report = report;
	r->context = context;
	if (ticker_open(&r->ticker))
		goto fail;
	if (open_channel(r))
		goto fail_ticker;
	return r;
fail_ticker:
	ticker_close(&r->ticker);
fail:
	free(r);
	return NULL;
}

static void name_free(struct name *n)
{
	timer_cancel(&n->resolver->ticker.wheel, &n->timer);
	free(n->uses);
	free(n);
}

void resolve_free(struct resolver *r)
{
	struct name *n;

	if (!r)
		return;
	/* calls back for every query that is under way */
	ares_destroy(r->channel);
	ares_library_cleanup();
	while ((n = r->names)) {
		r->names = n->next;
		name_free(n);
	}
	ticker_close(&r->ticker);
	free(r);
}

int resolve_set_servers(struct resolver *r, const char *servers)
{
	return ares_set_servers_ports_csv(r->channel, servers) ? -EINVAL : 0;
}

int resolve_fd(const struct resolver *r)
{
	return r->ticker.epoll_fd;
}

static struct name *find_name(struct resolver *r, const char *host)
{
	size_t size = strlen(host) + 1;
	struct name *n;

	for (n = r->names; n; n = n->next)
		if (!strcasecmp(n->host, host))
			return n;
	n = calloc(1, sizeof(*n) + size);
	if (!n)
		return NULL;
	memcpy(n->host, host, size);
	n->resolver = r;
	n->next = r->names;
	r->names = n;
	return n;
}

static int add_use(struct resolver *r, struct backend *b,
		   unsigned int server_index)
{
	struct name *n = find_name(r, b->config->servers[server_index].host);

	if (!n)
		return -ENOMEM;
	if (n->nr_uses == n->max_uses) {
		size_t max = n->max_uses ? 2 * n->max_uses : 1;
		struct use *uses = realloc(n->uses, max * sizeof(*uses));

		if (!uses)
			return -ENOMEM;
		n->uses = uses;
		n->max_uses = max;
	}
	n->uses[n->nr_uses++] = (struct use){ b, server_index };
	return 0;
}

/* One that is being asked is needed until c-ares has called back. */
static void free_unused_names(struct resolver *r)
{
	struct name **at = &r->names, *n;

	while ((n = *at)) {
		if (n->nr_uses || n->is_asked) {
			at = &n->next;
			continue;
		}
		*at = n->next;
		name_free(n);
	}
}

int resolve_watch(struct resolver *r, struct backend_set *set)
{
	struct name *n;
	unsigned int i, j;
	int err = 0;

	for (n = r->names; n; n = n->next)
		n->nr_uses = 0;
	for (i = 0; set && i < set->nr_backends; i++) {
		struct backend *b = &set->backends[i];

		for (j = 0; j < b->config->nr_servers; j++)
			if (b->config->servers[j].host && !err)
				err = add_use(r, b, j);
	}
	free_unused_names(r);
	for (n = r->names; n; n = n->next) {
		if (n->known.nr && !err)
			err = apply(n, &n->known);
		if (n->nr_uses && !n->is_asked && !n->timer.pprev)
			ask(n);
	}
	arm_ares_timer(r);
	ticker_wind(&r->ticker);
	return err;
}
