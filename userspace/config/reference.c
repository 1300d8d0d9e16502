// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "statement.h"
#include "suggest.h"
#include "validate.h"

static int compare_names(const void *x, const void *y, void *context)
{
	const struct config_backend *backends = context;
	unsigned int a = *(const unsigned int *)x, b = *(const unsigned int *)y;
	int d = strcmp(backends[a].name, backends[b].name);

	return d ? d : (a > b) - (a < b);
}

void config_index_backends(struct config_builder *b)
{
	struct config *c = b->config;
	unsigned int *index, i;

	if (!c->nr_backends)
		return;
	index = calloc(c->nr_backends, sizeof(*index));
	if (!index) {
		b->is_out_of_memory = true;
		return;
	}
	for (i = 0; i < c->nr_backends; i++)
		index[i] = i;
	qsort_r(index, c->nr_backends, sizeof(*index), compare_names,
		c->backends);
	for (i = 1; i < c->nr_backends; i++) {
		const struct config_backend *first = &c->backends[index[i - 1]];
		const struct config_backend *second = &c->backends[index[i]];

		if (!strcmp(first->name, second->name))
			config_error(b, &second->at,
				     "backend %s was defined before, at %s",
				     config_quote(b, second->name),
				     config_place(b, &first->at));
	}
	c->backends_by_name = index;
}

static void report_unknown(struct config_builder *b,
			   const struct config_reference *r)
{
	const struct config *c = b->config;
	const char *name = config_quote(b, r->name);
	struct config_suggestion near = { .word = r->name };
	unsigned int i;

	for (i = 0; i < c->nr_backends; i++)
		config_suggest(&near, c->backends[i].name);
	if (!strcmp(r->name, "refuse") || !strcmp(r->name, "drop"))
		config_error(b, &r->at,
			     "unknown backend %s; write `%s` without `to`",
			     name, r->name);
	else if (near.best)
		config_error(b, &r->at, "unknown backend %s; did you mean %s?",
			     name, config_quote(b, near.best));
	else
		config_error(b, &r->at,
			     "unknown backend %s; no line `backend NAME "
			     "SERVER` has that name",
			     name);
}

/* "cannot take QUIC", and why. */
static const char *why_not(const struct config_backend *backend)
{
	if (backend->transports & TRANSPORT_QUIC)
		return "it is for `quic` alone";
	return config_has_unix_server(backend) ? "it is a unix socket"
					       : "it is for `tcp` alone";
}

static const char *transport_name(unsigned int transports)
{
	return transports & TRANSPORT_QUIC ? "QUIC" : "TCP";
}

/* What was asked for by name must be possible. */
static void require(struct config_builder *b, const struct config_reference *r,
		    const struct config_backend *backend,
		    unsigned int transports)
{
	unsigned int missing = transports & ~backend->transports;

	if (missing)
		config_error(b, &r->at, "backend %s cannot take %s: %s",
			     config_quote(b, r->name), transport_name(missing),
			     why_not(backend));
}

bool config_has_quic_listener(const struct config *c)
{
	unsigned int i;

	for (i = 0; i < c->nr_listens; i++)
		if (c->listens[i].transports & TRANSPORT_QUIC)
			return true;
	return false;
}

/* What was not asked for by name follows from the backend. */
static void narrow(struct config_builder *b, const struct config_reference *r,
		   const struct config_location *at, const char *what,
		   const struct config_backend *backend)
{
	if (backend->transports == TRANSPORT_QUIC ||
	    (backend->transports == TRANSPORT_TCP &&
	     config_has_quic_listener(b->config)))
		config_warn(b, at,
			    "this %s serves %s alone, since backend %s cannot "
			    "take %s: %s",
			    what, transport_name(backend->transports),
			    config_quote(b, r->name),
			    transport_name(~backend->transports),
			    why_not(backend));
}

static void resolve_route(struct config_builder *b,
			  const struct config_reference *r,
			  const struct config_backend *backend)
{
	struct config_route *route = &b->config->routes[r->index];

	route->target.backend = (unsigned int)(backend - b->config->backends);
	if (route->transports) {
		require(b, r, backend, route->transports);
		return;
	}
	narrow(b, r, &route->at, "route", backend);
	route->transports = backend->transports;
}

static void resolve(struct config_builder *b, const struct config_reference *r)
{
	struct config *c = b->config;
	int found = config_find_backend(c, r->name);
	unsigned int index = (unsigned int)found;

	if (found < 0) {
		report_unknown(b, r);
		return;
	}
	switch (r->kind) {
	case REFERENCE_LISTEN:
		c->listens[r->index].backend = index;
		require(b, r, &c->backends[index],
			c->listens[r->index].transports);
		break;
	case REFERENCE_ROUTE:
		resolve_route(b, r, &c->backends[index]);
		break;
	case REFERENCE_DEFAULT:
		c->default_target.backend = index;
		narrow(b, r, &c->default_at, "default", &c->backends[index]);
		break;
	case REFERENCE_DEFAULT_PLAIN:
		c->default_plain.backend = index;
		require(b, r, &c->backends[index], TRANSPORT_TCP);
		break;
	}
}

void config_resolve_references(struct config_builder *b)
{
	size_t i;

	for (i = 0; i < b->nr_references && !config_has_given_up(b); i++) {
		resolve(b, &b->references[i]);
		config_arena_clear(b->line);
	}
}
