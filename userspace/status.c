// SPDX-License-Identifier: GPL-2.0-or-later
#include "status.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

static void set_number(json_t *j, const char *key, uint64_t n)
{
	json_object_set_new(j, key, json_integer((json_int_t)n));
}

static json_t *listeners_json(const struct snapshot *s)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < s->nr_listeners; i++) {
		const struct listener *l = s->listeners[i].listener;
		const char *transport =
			l->transport == TRANSPORT_QUIC ? "quic" : "tcp";
		json_t *j = json_object();

		json_object_set_new(j, "address", json_string(l->label));
		json_object_set_new(j, "transport", json_string(transport));
		json_object_set_new(j, "mode", json_string("normal"));
		json_array_append_new(list, j);
	}
	return list;
}

static uint64_t load(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void add_server(void *context, struct server *s)
{
	enum server_state state = server_state(s, (uint32_t)clock_ms());
	json_t *j = json_object();

	json_object_set_new(j, "address", json_string(s->label));
	json_object_set_new(j, "state", json_string(server_state_name(state)));
	set_number(j, "connections",
		   atomic_load_explicit(&s->connections, memory_order_relaxed));
	set_number(j, "connections_total", load(&s->connections_total));
	set_number(j, "failures", load(&s->failures));
	set_number(j, "bytes_in", load(&s->bytes_in));
	set_number(j, "bytes_out", load(&s->bytes_out));
	json_array_append_new(context, j);
}

static json_t *backends_json(const struct snapshot *s)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < s->backends->nr_backends; i++) {
		struct backend *b = &s->backends->backends[i];
		json_t *j = json_object(), *servers = json_array();

		backend_for_each(b, add_server, servers);
		json_object_set_new(j, "name", json_string(b->config->name));
		json_object_set_new(j, "servers", servers);
		json_array_append_new(list, j);
	}
	return list;
}

#define SUM(stats, field) \
	((json_int_t)stats_sum(stats, offsetof(struct stats_worker, field)))

/* Each part of a gauge is read at its own moment: a sum may come out as -1. */
#define GAUGE(stats, field) (SUM(stats, field) < 0 ? 0 : SUM(stats, field))

static json_t *refused_json(const struct stats *s)
{
	json_t *j = json_object();
	unsigned int r;

	for (r = REASON_NONE + 1; r < NR_REASONS; r++)
		json_object_set_new(j, reason_name(r),
				    json_integer(SUM(s, refused[r])));
	return j;
}

static void set_counters(json_t *j, const struct stats *s)
{
	json_t *connections =
		json_pack("{s:I, s:I}", "now", GAUGE(s, connections), "total",
			  SUM(s, accepted));
	json_t *bytes = json_pack("{s:I, s:I}", "in", SUM(s, bytes_in), "out",
				  SUM(s, bytes_out));
	json_t *engines =
		json_pack("{s:I, s:I, s:i}", "rw", GAUGE(s, engine_rw),
			  "splice", GAUGE(s, engine_splice), "sockmap", 0);

	json_object_set_new(j, "connections", connections);
	json_object_set_new(j, "bytes", bytes);
	json_object_set_new(j, "engines", engines);
	json_object_set_new(j, "flows",
			    json_pack("{s:i, s:i}", "now", 0, "total", 0));
	json_object_set_new(j, "refused", refused_json(s));
	json_object_set_new(j, "log_lines_lost",
			    json_integer(SUM(s, log_lost)));
}

static unsigned int count_patterns(const struct config *c)
{
	unsigned int i, nr = 0;

	for (i = 0; i < c->nr_routes; i++)
		nr += c->routes[i].nr_patterns;
	return nr;
}

static void set_facts(json_t *j, const struct status_facts *f,
		      const struct snapshot *s)
{
	json_t *limits;

	json_object_set_new(j, "version", json_string(HEADGATE_VERSION));
	json_object_set_new(
		j, "state",
		json_string(f->is_draining ? "draining" : "running"));
	json_object_set_new(j, "config_file", json_string(f->config_path));
	set_number(j, "generation", f->generation);
	set_number(j, "router_pid", (uint64_t)getpid());
	set_number(j, "router_restarts", f->router_restarts);
	set_number(j, "workers", f->nr_workers);
	set_number(j, "routes", count_patterns(s->config));
	limits = json_pack("{s:I, s:I}", "connections",
			   (json_int_t)s->config->limits.connections,
			   "connections_by_descriptors",
			   (json_int_t)f->nr_connections_max);
	json_object_set_new(j, "limits", limits);
}

char *status_json(const struct status_facts *facts,
		  const struct snapshot *snapshot, const struct stats *stats)
{
	json_t *j = json_object();
	char *text, *line = NULL;

	set_facts(j, facts, snapshot);
	set_number(j, "uptime_s", (clock_ms() - stats->started_at_ms) / 1000);
	json_object_set_new(j, "listeners", listeners_json(snapshot));
	json_object_set_new(j, "backends", backends_json(snapshot));
	set_counters(j, stats);
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}
