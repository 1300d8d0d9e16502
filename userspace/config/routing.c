// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "hostname.h"
#include "pending.h"
#include "report.h"
#include "statement.h"

/* RFC 7301, 3.1 */
#define ALPN_MAX 255
/* every name of a route goes with every protocol of it */
#define ALPNS_MAX 16

void config_begin_route(struct config_builder *b,
			const struct config_location *at)
{
	b->route = (struct config_route){ .at = *at };
}

static bool append(struct config_builder *b, void *array, unsigned int nr,
		   const void *element, size_t size)
{
	unsigned char *grown;

	memcpy(&grown, array, sizeof(grown));
	grown = config_arena_grow(b->config->memory, grown, nr, size);
	if (!grown) {
		b->is_out_of_memory = true;
		return false;
	}
	memcpy(grown + nr * size, element, size);
	memcpy(array, &grown, sizeof(grown));
	return true;
}

void config_add_pattern(struct config_builder *b, const struct config_word *w)
{
	struct config_route *r = &b->route;
	char *pattern = config_read_pattern(b, w);

	if (pattern &&
	    append(b, &r->patterns, r->nr_patterns, &pattern,
		   sizeof(pattern)) &&
	    append(b, &r->pattern_at, r->nr_patterns, &w->at, sizeof(w->at)))
		r->nr_patterns++;
}

void config_add_alpn(struct config_builder *b, const struct config_word *w)
{
	struct config_route *r = &b->route;
	size_t len = strlen(w->text);
	char *alpn;

	if (!len || len > ALPN_MAX) {
		config_error(b, &w->at,
			     "the name of a protocol has 1 to %d bytes, this "
			     "one has %zu",
			     ALPN_MAX, len);
		return;
	}
	if (r->nr_alpns == ALPNS_MAX) {
		config_error(b, &w->at, "a route has at most %d protocols",
			     ALPNS_MAX);
		return;
	}
	alpn = config_keep(b, w->text);
	if (alpn && append(b, &r->alpns, r->nr_alpns, &alpn, sizeof(alpn)))
		r->nr_alpns++;
}

void config_set_route_quic(struct config_builder *b,
			   const struct config_location *at)
{
	config_warn_pending(b, FEATURE_ROUTE_QUIC, at);
	b->route.transports |= TRANSPORT_QUIC;
}

void config_end_route(struct config_builder *b, enum config_target_kind kind,
		      const struct config_word *name)
{
	struct config *c = b->config;
	struct config_route *r = config_append(b, c->routes, c->nr_routes);

	if (!r)
		return;
	*r = b->route;
	r->target.kind = kind;
	if (kind == TARGET_BACKEND)
		config_refer(b, name, REFERENCE_ROUTE, c->nr_routes - 1);
}

static void set_default(struct config_builder *b,
			const struct config_location *at,
			enum config_target_kind kind,
			const struct config_word *name)
{
	if (!config_once(b, ONCE_DEFAULT, at, "default"))
		return;
	b->config->default_at = *at;
	b->config->default_target.kind = kind;
	if (kind == TARGET_BACKEND)
		config_refer(b, name, REFERENCE_DEFAULT, 0);
}

static void set_default_plain(struct config_builder *b,
			      const struct config_location *at,
			      enum config_target_kind kind,
			      const struct config_word *name)
{
	if (!config_once(b, ONCE_DEFAULT_PLAIN, at, "default plain"))
		return;
	b->config->default_plain_at = *at;
	b->config->default_plain.kind = kind;
	if (kind == TARGET_BACKEND)
		config_refer(b, name, REFERENCE_DEFAULT_PLAIN, 0);
	if (kind == TARGET_REFUSE)
		config_error(b, at,
			     "bytes that are not TLS cannot be refused with a "
			     "TLS alert; write `default plain drop`");
}

void config_set_default(struct config_builder *b,
			const struct config_location *at, bool is_plain,
			enum config_target_kind kind,
			const struct config_word *name)
{
	if (is_plain)
		set_default_plain(b, at, kind, name);
	else
		set_default(b, at, kind, name);
}
