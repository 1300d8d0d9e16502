// SPDX-License-Identifier: GPL-2.0-or-later
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All servers, by (backend name, label). */
#define NR_BUCKETS 1024
static struct server *buckets[NR_BUCKETS];

static struct server **bucket_of(const char *backend_name, const char *label)
{
	uint32_t h = 2166136261; /* FNV-1a */

	for (; *backend_name; backend_name++)
		h = (h ^ (uint8_t)*backend_name) * 16777619;
	for (; *label; label++)
		h = (h ^ (uint8_t)*label) * 16777619;
	return &buckets[h % NR_BUCKETS];
}

static void server_free(struct server *s)
{
	free(s->backend_name);
	free(s->label);
	free(s);
}

static struct server *server_new(const char *backend_name, const char *label)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->backend_name = strdup(backend_name);
	s->label = strdup(label);
	if (s->backend_name && s->label)
		return s;
	server_free(s);
	return NULL;
}

/* Found or made; a new one has no sockaddr yet. */
static struct server *find(const char *backend_name, const char *label)
{
	struct server **bucket = bucket_of(backend_name, label), *s;

	for (s = *bucket; s; s = s->next)
		if (!strcmp(s->label, label) &&
		    !strcmp(s->backend_name, backend_name))
			return s;
	s = server_new(backend_name, label);
	if (!s)
		return NULL;
	s->next = *bucket;
	*bucket = s;
	return s;
}

struct server *server_find_address(const char *backend_name,
				   const struct address *address)
{
	char label[ADDRESS_TEXT];
	struct server *s;

	address_format(address, label, sizeof(label));
	s = find(backend_name, label);
	if (s && !s->sockaddr_len) {
		s->address = *address;
		s->sockaddr_len =
			address_to_sockaddr(address, &s->sockaddr.storage);
	}
	return s;
}

struct server *server_find_path(const char *backend_name, const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char label[sizeof("unix:") + sizeof(un.sun_path)];
	struct server *s;

	/* the configuration refuses a path that does not fit */
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	snprintf(label, sizeof(label), "unix:%s", un.sun_path);
	s = find(backend_name, label);
	if (s && !s->sockaddr_len) {
		s->sockaddr.un = un;
		s->sockaddr_len = sizeof(un);
	}
	return s;
}

void server_collect(void)
{
	unsigned int i;

	for (i = 0; i < NR_BUCKETS; i++) {
		struct server **at = &buckets[i], *s;

		while ((s = *at)) {
			if (s->nr_holds ||
			    atomic_load_explicit(&s->connections,
						 memory_order_acquire)) {
				at = &s->next;
				continue;
			}
			*at = s->next;
			server_free(s);
		}
	}
}

void server_mark_failure(struct server *s, uint32_t now_ms)
{
	atomic_fetch_add_explicit(&s->failures, 1, memory_order_relaxed);
	atomic_store_explicit(&s->failed_at_ms, now_ms ? now_ms : 1,
			      memory_order_relaxed);
}

void server_mark_success(struct server *s)
{
	/* nearly always there is no mark, and the line stays shared */
	if (atomic_load_explicit(&s->failed_at_ms, memory_order_relaxed))
		atomic_store_explicit(&s->failed_at_ms, 0,
				      memory_order_relaxed);
}

/* Another worker's clock may be a little ahead of ours. */
#define CLOCK_SKEW_MS 1000

enum server_state server_state(const struct server *s, uint32_t now_ms)
{
	uint32_t failed_at_ms;

	if (atomic_load_explicit(&s->is_down, memory_order_relaxed))
		return SERVER_DOWN;
	failed_at_ms =
		atomic_load_explicit(&s->failed_at_ms, memory_order_relaxed);
	/*
	 * The clock wraps after 49 days: a mark that no connection has cleared
	 * in all that time counts once more, for ten seconds.
	 */
	if (failed_at_ms && now_ms - failed_at_ms + CLOCK_SKEW_MS <
				    SERVER_FAILING_MS + CLOCK_SKEW_MS)
		return SERVER_FAILING;
	return SERVER_UP;
}

const char *server_state_name(enum server_state state)
{
	switch (state) {
	case SERVER_UP:
		break;
	case SERVER_FAILING:
		return "failing";
	case SERVER_DOWN:
		return "down";
	}
	return "up";
}
