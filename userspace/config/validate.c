// SPDX-License-Identifier: GPL-2.0-or-later
#include "validate.h"

#include "report.h"

/* Routes without a backend, or whose backend is unknown, serve both. */
static void set_transports(struct config *c)
{
	unsigned int i;

	for (i = 0; i < c->nr_routes; i++)
		if (!c->routes[i].transports)
			c->routes[i].transports = TRANSPORT_TCP |
						  TRANSPORT_QUIC;
}

static void set_default_targets(struct config *c)
{
	if (c->default_target.kind == TARGET_UNSET)
		c->default_target.kind = TARGET_REFUSE;
	if (c->default_plain.kind == TARGET_UNSET)
		c->default_plain.kind = TARGET_DROP;
}

/* A tier is for more than one client. */
static void check_tier(struct config_builder *b, const struct config_tier *t,
		       unsigned int client)
{
	if (t->prefix_len >= client)
		config_error(b, &t->at,
			     "a tier of /%u is not wider than a client, which "
			     "is a /%u; write a smaller number",
			     t->prefix_len, client);
}

static void check_tiers(struct config_builder *b)
{
	const struct config_limits *l = &b->config->limits;
	unsigned int v4 = b->config->client_prefix_v4;
	unsigned int v6 = b->config->client_prefix_v6;

	check_tier(b, &l->quic_initials_v4, v4);
	check_tier(b, &l->quic_initials_v6, v6);
	check_tier(b, &l->syns_v4, v4);
	check_tier(b, &l->syns_v6, v6);
}

static const struct config_listen *find_router(const struct config *c)
{
	unsigned int i;

	for (i = 0; i < c->nr_listens; i++)
		if (!c->listens[i].has_target)
			return &c->listens[i];
	return NULL;
}

static void check_listens(struct config_builder *b)
{
	const struct config *c = b->config;
	const struct config_listen *router = find_router(c);
	struct config_location whole = { c->file_names[0], 1, 1 };

	if (!c->nr_listens && !c->nr_guards)
		config_error(b, &whole,
			     "there is no `listen` line, so nothing would be "
			     "served; add one, such as `listen :443 tcp`");
	if (router && !c->nr_routes && !c->default_at.line)
		config_warn(b, &router->at,
			    "no `route` and no `default` line: every client "
			    "will be refused");
}

static void check_proxy(struct config_builder *b)
{
	const struct config *c = b->config;
	unsigned int i;

	if (!config_has_quic_listener(c))
		return;
	for (i = 0; i < c->nr_backends; i++) {
		const struct config_backend *backend = &c->backends[i];

		if (backend->proxy && backend->transports & TRANSPORT_QUIC)
			config_warn(b, &backend->at,
				    "a `proxy` header is sent over TCP alone, "
				    "and backend %s takes QUIC too",
				    config_quote(b, backend->name));
	}
}

void config_validate(struct config_builder *b)
{
	bool was_sound = !b->nr_errors;

	config_index_backends(b);
	config_resolve_references(b);
	set_transports(b->config);
	set_default_targets(b->config);
	config_find_duplicate_routes(b);
	check_tiers(b);
	check_proxy(b);
	/* what a bad line was to say is not to be missed */
	if (was_sound)
		check_listens(b);
	config_arena_clear(b->line);
}
