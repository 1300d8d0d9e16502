// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include <sys/un.h>

#include "hostname.h"
#include "pending.h"
#include "report.h"
#include "statement.h"
#include "value.h"

#define UNIX_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

void config_begin_backend(struct config_builder *b,
			  const struct config_word *name)
{
	config_check_name(b, name, "backend");
	b->backend = (struct config_backend){
		.at = name->at,
		.name = config_keep(b, name->text),
		.check = {
			.interval_ms = 5000,
			.timeout_ms = 2000,
			.rise = 2,
			.fall = 3,
		},
	};
}

static bool read_unix(struct config_builder *b, const struct config_word *w,
		      struct config_server *s)
{
	const char *path = w->text + strlen("unix:");

	if (*path != '/') {
		config_error(b, &w->at,
			     "the path of %s does not begin with '/'; write "
			     "it in full, such as unix:/run/site.sock",
			     config_quote(b, w->text));
		return false;
	}
	if (strlen(path) > UNIX_PATH_MAX) {
		config_error(b, &w->at,
			     "the path of a unix socket has at most %zu bytes, "
			     "this one has %zu",
			     UNIX_PATH_MAX, strlen(path));
		return false;
	}
	s->unix_path = config_keep(b, path);
	return true;
}

static bool read_port(struct config_builder *b, const struct config_word *w,
		      const char *digits, uint16_t *out)
{
	static const struct config_range range = { "a port", 1, 65535 };
	struct config_word word = { digits, w->at };
	uint32_t port;

	if (!config_read_number(b, &word, &range, &port))
		return false;
	*out = (uint16_t)port;
	return true;
}

static void explain_no_port(struct config_builder *b,
			    const struct config_word *w, bool is_ipv6)
{
	if (is_ipv6)
		config_error(b, &w->at,
			     "%s is an IPv6 address without brackets and port; "
			     "write it as '[2001:db8::1]:443'",
			     config_quote(b, w->text));
	else
		config_error(b, &w->at,
			     "the server %s has no port; add one, such as "
			     "':443'",
			     config_quote(b, w->text));
}

static bool read_host(struct config_builder *b, const struct config_word *w,
		      struct config_server *s)
{
	const char *colon = strrchr(w->text, ':');
	struct config_word host = { NULL, w->at };
	struct address a;

	if (!colon || address_parse_host(w->text, &a)) {
		explain_no_port(b, w, colon && w->text[0] != '[');
		return false;
	}
	host.text = config_arena_copy(b->line, w->text,
				      (size_t)(colon - w->text));
	if (!host.text) {
		b->is_out_of_memory = true;
		return false;
	}
	if (address_parse_host(host.text, &a) && a.family == AF_INET6 &&
	    w->text[0] != '[') {
		config_error(b, &w->at,
			     "the IPv6 address of %s needs brackets; write it "
			     "as '[2001:db8::1]:443'",
			     config_quote(b, w->text));
		return false;
	}
	if (!read_port(b, w, colon + 1, &s->address.port))
		return false;
	s->host = config_read_hostname(b, &host);
	return s->host;
}

static bool read_server(struct config_builder *b, const struct config_word *w,
			struct config_server *s)
{
	if (!strncmp(w->text, "unix:", 5))
		return read_unix(b, w, s);
	if (!address_parse(w->text, &s->address))
		return read_host(b, w, s);
	if (s->address.family != AF_UNSPEC)
		return true;
	config_error(b, &w->at,
		     "the server %s has no host; write '127.0.0.1%s' for this "
		     "machine",
		     config_quote(b, w->text), w->text);
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_same(const struct config_server *a,
		    const struct config_server *b)
{
	return address_equal(&a->address, &b->address) &&
	       same_text(a->host, b->host) &&
	       same_text(a->unix_path, b->unix_path);
}

void config_add_server(struct config_builder *b, const struct config_word *w)
{
	struct config_backend *backend = &b->backend;
	struct config_server server = { .at = w->at, .weight = 1 }, *grown;
	unsigned int i;

	b->seen &= ~(1U << OPTION_WEIGHT | 1U << OPTION_BACKUP);
	if (read_server(b, w, &server)) {
		for (i = 0; i < backend->nr_servers; i++)
			if (is_same(&backend->servers[i], &server))
				break;
		if (i < backend->nr_servers)
			config_error(b, &w->at,
				     "server %s is given twice; `weight` gives "
				     "it more of the connections",
				     config_quote(b, w->text));
	}
	/* a bad one keeps its place for the weight that may follow */
	grown = config_arena_grow(b->config->memory, backend->servers,
				  backend->nr_servers, sizeof(server));
	if (!grown) {
		b->is_out_of_memory = true;
		return;
	}
	backend->servers = grown;
	backend->servers[backend->nr_servers++] = server;
}

static struct config_server *last_server(struct config_builder *b)
{
	struct config_backend *backend = &b->backend;

	return backend->nr_servers
		       ? &backend->servers[backend->nr_servers - 1]
		       : NULL;
}

void config_set_weight(struct config_builder *b,
		       const struct config_location *at,
		       const struct config_word *weight)
{
	static const struct config_range range = { "a weight", 1, 256 };
	struct config_server *s = last_server(b);

	if (s && config_option_once(b, OPTION_WEIGHT, at))
		config_read_number(b, weight, &range, &s->weight);
}

void config_set_backup(struct config_builder *b,
		       const struct config_location *at)
{
	struct config_server *s = last_server(b);

	if (s && config_option_once(b, OPTION_BACKUP, at))
		s->is_backup = true;
}

void config_set_proxy(struct config_builder *b,
		      const struct config_location *at, unsigned int version,
		      unsigned int tlvs)
{
	if (!config_option_once(b, OPTION_PROXY, at))
		return;
	if (tlvs && version == 1) {
		config_error(b, at,
			     "version 1 of the PROXY protocol has no TLVs; "
			     "write `proxy v2 tlv ...`");
		return;
	}
	b->backend.proxy = version;
	b->backend.proxy_tlvs = tlvs;
}

void config_set_check_time(struct config_builder *b,
			   const struct config_location *at,
			   enum config_option which,
			   const struct config_word *time)
{
	static const struct config_range every = { "the time between checks",
						   100, 3600000 };
	static const struct config_range timeout = { "the timeout of a check",
						     10, 600000 };
	struct config_check *check = &b->backend.check;

	if (!config_option_once(b, which, at))
		return;
	if (which == OPTION_CHECK_EVERY)
		config_read_time(b, time, &every, &check->interval_ms);
	else
		config_read_time(b, time, &timeout, &check->timeout_ms);
}

void config_set_check_count(struct config_builder *b,
			    const struct config_location *at,
			    enum config_option which,
			    const struct config_word *count)
{
	static const struct config_range range = { "a number of checks", 1,
						   100 };
	struct config_check *check = &b->backend.check;

	if (config_option_once(b, which, at))
		config_read_number(b, count, &range,
				   which == OPTION_CHECK_RISE ? &check->rise
							      : &check->fall);
}

void config_set_path(struct config_builder *b,
		     const struct config_location *at, enum config_path path)
{
	if (!config_option_once(b, OPTION_PATH, at))
		return;
	/* the automatic choice is kept, whatever there is to choose from */
	if (path != PATH_AUTO)
		config_warn_pending(b, FEATURE_PATH, at);
	b->backend.path = path;
}

bool config_has_unix_server(const struct config_backend *backend)
{
	unsigned int i;

	for (i = 0; i < backend->nr_servers; i++)
		if (backend->servers[i].unix_path)
			return true;
	return false;
}

static void keep_backend(struct config_builder *b)
{
	struct config *c = b->config;
	struct config_backend *backend;

	backend = config_append(b, c->backends, c->nr_backends);
	if (backend)
		*backend = b->backend;
	b->backend.name = NULL;
}

void config_end_backend(struct config_builder *b)
{
	bool has_unix = config_has_unix_server(&b->backend);

	if (has_unix && b->backend.transports & TRANSPORT_QUIC)
		config_error(b, &b->backend.at,
			     "backend %s is to take QUIC, which a unix socket "
			     "cannot; write `tcp`, or give it an address",
			     config_quote(b, b->backend.name));
	if (!b->backend.transports)
		b->backend.transports = has_unix ? TRANSPORT_TCP
						 : TRANSPORT_TCP |
							   TRANSPORT_QUIC;
	keep_backend(b);
}

void config_abandon_backend(struct config_builder *b)
{
	if (b->backend.name)
		keep_backend(b);
}
