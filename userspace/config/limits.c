// SPDX-License-Identifier: GPL-2.0-or-later
#include "pending.h"
#include "report.h"
#include "statement.h"
#include "value.h"

#define CONNECTIONS_MAX 10000000
/* a lane of the sketch has 16 bits */
#define CLIENT_CONNECTIONS_MAX 65535
#define BURST_MAX 10000000
#define PENALTY_MAX_MS (7 * 24 * 3600000U)

void config_set_connections(struct config_builder *b,
			    const struct config_location *at,
			    const struct config_word *count)
{
	static const struct config_range range = { "the number of connections",
						   1, CONNECTIONS_MAX };

	if (!config_once(b, ONCE_CONNECTIONS, at, "limit connections"))
		return;
	if (count->text)
		config_read_number(b, count, &range,
				   &b->config->limits.connections);
	else
		config_error(b, at,
			     "`limit connections` cannot be off, since the "
			     "table of connections is sized by it; write a "
			     "number");
}

void config_set_client_connections(struct config_builder *b,
				   const struct config_location *at,
				   const struct config_word *count)
{
	static const struct config_range range = {
		"the number of connections per client", 1,
		CLIENT_CONNECTIONS_MAX
	};
	uint32_t *out = &b->config->limits.connections_per_client;

	if (!config_once(b, ONCE_CONNECTIONS_PER_CLIENT, at,
			 "limit connections ... per client"))
		return;
	config_warn_pending(b, FEATURE_CONNECTIONS_PER_CLIENT, at);
	if (count->text)
		config_read_number(b, count, &range, out);
	else
		*out = 0;
}

/* Off is the rate with the count 0. */
static bool read_rate(struct config_builder *b, const struct config_amount *a,
		      struct config_rate *out)
{
	static const struct config_range range = { "a burst", 1, BURST_MAX };

	*out = (struct config_rate){ .is_set = true, .period_ms = 1000 };
	if (!a->value.text)
		return true;
	if (!config_read_rate(b, &a->value, out))
		return false;
	return !a->burst.text ||
	       config_read_number(b, &a->burst, &range, &out->burst);
}

static void set_new_off(struct config_builder *b,
			const struct config_location *at,
			const struct config_rate *off)
{
	struct config_limits *l = &b->config->limits;
	const char *what = "limit new-connections";

	if (!config_once(b, ONCE_NEW_CONNECTIONS_SECOND, at, what) ||
	    !config_once(b, ONCE_NEW_CONNECTIONS_MINUTE, at, what))
		return;
	l->new_connections_second = *off;
	l->new_connections_minute = *off;
}

void config_set_new_connections(struct config_builder *b,
				const struct config_location *at,
				const struct config_amount *a)
{
	struct config_limits *l = &b->config->limits;
	struct config_rate rate;

	config_warn_pending(b, FEATURE_NEW_CONNECTIONS, at);
	if (!read_rate(b, a, &rate))
		return;
	if (!rate.count)
		set_new_off(b, at, &rate);
	else if (rate.period_ms == 1000 &&
		 config_once(b, ONCE_NEW_CONNECTIONS_SECOND, at,
			     "limit new-connections .../s"))
		l->new_connections_second = rate;
	else if (rate.period_ms == 60000 &&
		 config_once(b, ONCE_NEW_CONNECTIONS_MINUTE, at,
			     "limit new-connections .../min"))
		l->new_connections_minute = rate;
	else if (rate.period_ms > 60000)
		config_error(b, &a->value.at,
			     "new connections are limited by /s and by /min, "
			     "not by /h");
}

/* One that is for each client, and for wider prefixes too. */
struct tiered {
	enum config_once once;
	enum config_feature feature;
	const char *what;
	struct config_rate *client;
	struct config_tier *v4, *v6;
};

static void set_tier(struct config_builder *b, const struct config_rate *rate,
		     enum config_scope scope,
		     const struct config_word *prefix_len,
		     struct config_tier *out)
{
	static const struct config_range v4 = { "the length of a tier", 1,
						31 };
	static const struct config_range v6 = { "the length of a tier", 1,
						127 };
	uint32_t len;

	if (!config_read_number(b, prefix_len, scope == SCOPE_V4 ? &v4 : &v6,
				&len))
		return;
	out->at = prefix_len->at;
	out->rate = *rate;
	out->prefix_len = rate->count ? len : 0;
}

static void set_tiered(struct config_builder *b,
		       const struct config_location *at,
		       const struct tiered *t, const struct config_amount *a,
		       enum config_scope scope,
		       const struct config_word *prefix_len)
{
	struct config_rate rate;

	if (!config_once(b, (unsigned int)t->once + scope, at, t->what))
		return;
	config_warn_pending(b, t->feature, at);
	if (!read_rate(b, a, &rate))
		return;
	if (scope == SCOPE_CLIENT)
		*t->client = rate;
	else
		set_tier(b, &rate, scope, prefix_len,
			 scope == SCOPE_V4 ? t->v4 : t->v6);
}

void config_set_quic_initials(struct config_builder *b,
			      const struct config_location *at,
			      const struct config_amount *a,
			      enum config_scope scope,
			      const struct config_word *prefix_len)
{
	struct config_limits *l = &b->config->limits;
	struct tiered t = { ONCE_QUIC_INITIALS,	 FEATURE_QUIC_INITIALS,
			    "limit quic-initials", &l->quic_initials,
			    &l->quic_initials_v4, &l->quic_initials_v6 };

	set_tiered(b, at, &t, a, scope, prefix_len);
}

void config_set_syns(struct config_builder *b, const struct config_location *at,
		     const struct config_amount *a, enum config_scope scope,
		     const struct config_word *prefix_len)
{
	struct config_limits *l = &b->config->limits;
	struct tiered t = { ONCE_SYNS, FEATURE_SYNS, "limit syns",
			    &l->syns,  &l->syns_v4,  &l->syns_v6 };

	set_tiered(b, at, &t, a, scope, prefix_len);
}

void config_set_long_headers(struct config_builder *b,
			     const struct config_location *at,
			     const struct config_amount *a)
{
	struct config_rate rate;

	if (!config_once(b, ONCE_LONG_HEADERS, at, "limit long-headers"))
		return;
	config_warn_pending(b, FEATURE_LONG_HEADERS, at);
	if (a->burst.text) {
		config_error(b, &a->burst.at,
			     "the burst of long-headers is always 100ms of "
			     "its rate; leave `burst` out");
		return;
	}
	if (!read_rate(b, a, &rate))
		return;
	rate.burst = (uint32_t)(rate.count * 100ULL / rate.period_ms);
	if (rate.count && !rate.burst)
		rate.burst = 1;
	b->config->limits.long_headers = rate;
}

void config_set_penalty(struct config_builder *b,
			const struct config_location *at,
			const struct config_word *time)
{
	static const struct config_range range = { "a penalty", 1000,
						   PENALTY_MAX_MS };
	uint32_t *out = &b->config->limits.penalty_ms;

	if (!config_once(b, ONCE_PENALTY, at, "limit penalty"))
		return;
	config_warn_pending(b, FEATURE_PENALTY, at);
	if (time->text)
		config_read_time(b, time, &range, out);
	else
		*out = 0;
}

void config_set_prove_yourself(struct config_builder *b,
			       const struct config_location *at,
			       const struct config_word *size)
{
	static const struct config_range range = {
		"the memory of prove-yourself", 64 << 10, 4ULL << 30
	};
	uint64_t *out = &b->config->limits.prove_yourself_bytes;

	if (!config_once(b, ONCE_PROVE_YOURSELF, at, "limit prove-yourself"))
		return;
	config_warn_pending(b, FEATURE_PROVE_YOURSELF, at);
	if (size->text)
		config_read_size(b, size, &range, out);
	else
		*out = 0;
}

void config_set_client_prefix(struct config_builder *b,
			      const struct config_location *at,
			      enum config_scope scope,
			      const struct config_word *prefix_len)
{
	static const struct config_range v4 = { "the prefix of an IPv4 client",
						8, 32 };
	static const struct config_range v6 = { "the prefix of an IPv6 client",
						16, 128 };
	struct config *c = b->config;

	config_warn_pending(b, FEATURE_CLIENT_PREFIX, at);
	if (scope == SCOPE_V4 && config_once(b, ONCE_CLIENT_PREFIX_V4, at,
					     "client prefix ipv4"))
		config_read_number(b, prefix_len, &v4, &c->client_prefix_v4);
	if (scope == SCOPE_V6 && config_once(b, ONCE_CLIENT_PREFIX_V6, at,
					     "client prefix ipv6"))
		config_read_number(b, prefix_len, &v6, &c->client_prefix_v6);
}
