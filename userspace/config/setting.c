// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <string.h>

#include "report.h"
#include "statement.h"
#include "value.h"

#define HOUR_MS 3600000U
#define USER_MAX 32
#define DIGITS "0123456789"

void config_set_defaults(struct config *c)
{
	static const uint16_t reflectors[] = { 0,    53,   123,
					       1900, 5353, 11211 };

	/*
	 * Idle: a WebSocket or a push channel pings once in five minutes at
	 * worst, and a connection that rests costs next to nothing. Hello and
	 * connect: a lost SYN is sent again after 1 s and 3 s.
	 */
	c->timeouts = (struct config_timeouts){
		.hello_ms = 5000,
		.connect_ms = 5000,
		.idle_ms = 600000,
		.drain_ms = 30000,
	};
	c->relay = (struct config_relay){ true, 64 << 10, 5000 };
	c->limits = (struct config_limits){
		.connections = 4000,
		.connections_per_client = 64,
		.new_connections_second = { false, 10, 1000, 40 },
		.new_connections_minute = { false, 300, 60000, 300 },
		.quic_initials = { false, 50, 1000, 100 },
		.syns = { false, 50, 1000, 200 },
		.long_headers = { false, 20000, 1000, 2000 },
		.penalty_ms = 600000,
		.prove_yourself_bytes = 32 << 20,
	};
	c->log = (struct config_log){ LOG_LOGFMT, true, 10 };
	c->client_prefix_v4 = 32;
	c->client_prefix_v6 = 64;
	memcpy(c->reflector_ports, reflectors, sizeof(reflectors));
	c->nr_reflector_ports = sizeof(reflectors) / sizeof(reflectors[0]);
}

void config_set_timeout(struct config_builder *b,
			const struct config_location *at,
			enum config_timeout which,
			const struct config_word *time)
{
	static const struct config_range ranges[] = {
		[TIMEOUT_HELLO] = { "timeout hello", 10, HOUR_MS },
		[TIMEOUT_CONNECT] = { "timeout connect", 10, HOUR_MS },
		[TIMEOUT_IDLE] = { "timeout idle", 100, 7 * 24 * HOUR_MS },
		[TIMEOUT_DRAIN] = { "timeout drain", 0, 7 * 24 * HOUR_MS },
	};
	struct config_timeouts *t = &b->config->timeouts;
	uint32_t *const out[] = {
		[TIMEOUT_HELLO] = &t->hello_ms,
		[TIMEOUT_CONNECT] = &t->connect_ms,
		[TIMEOUT_IDLE] = &t->idle_ms,
		[TIMEOUT_DRAIN] = &t->drain_ms,
	};

	if (config_once(b, (enum config_once)(ONCE_TIMEOUT + (int)which), at,
			ranges[which].what))
		config_read_time(b, time, &ranges[which], out[which]);
}

void config_set_relay(struct config_builder *b,
		      const struct config_location *at,
		      const struct config_word *size,
		      const struct config_word *time)
{
	static const struct config_range bytes = { "`splice after`", 0,
						   1ULL << 40 };
	static const struct config_range ms = { "`splice after`", 0,
						24 * HOUR_MS };
	struct config_relay *r = &b->config->relay;

	if (!config_once(b, ONCE_RELAY, at, "relay splice"))
		return;
	config_read_size(b, size, &bytes, &r->splice_after_bytes);
	config_read_time(b, time, &ms, &r->splice_after_ms);
}

void config_set_relay_off(struct config_builder *b,
			  const struct config_location *at)
{
	if (config_once(b, ONCE_RELAY, at, "relay splice"))
		b->config->relay = (struct config_relay){ false, 0, 0 };
}

void config_set_log_format(struct config_builder *b,
			   const struct config_location *at,
			   enum config_log_format format)
{
	if (config_once(b, ONCE_LOG_FORMAT, at, "log logfmt|json"))
		b->config->log.format = format;
}

void config_set_log_connections(struct config_builder *b,
				const struct config_location *at, bool is_on)
{
	if (config_once(b, ONCE_LOG_CONNECTIONS, at, "log connections"))
		b->config->log.has_connections = is_on;
}

void config_set_log_refusals(struct config_builder *b,
			     const struct config_location *at,
			     const struct config_word *w)
{
	struct config_rate rate;

	if (!config_once(b, ONCE_LOG_REFUSALS, at, "log refusals"))
		return;
	if (!w->text) {
		b->config->log.refusals_per_sec = 0;
		return;
	}
	if (!config_read_rate(b, w, &rate))
		return;
	if (rate.period_ms == 1000)
		b->config->log.refusals_per_sec = rate.count;
	else
		config_error(b, &w->at,
			     "refusals are logged by the second; write /s");
}

void config_set_workers(struct config_builder *b,
			const struct config_location *at,
			const struct config_word *count)
{
	static const struct config_range range = { "the number of workers", 1,
						   CONFIG_WORKERS_MAX };

	if (!config_once(b, ONCE_WORKERS, at, "workers"))
		return;
	if (count)
		config_read_number(b, count, &range, &b->config->workers);
	else
		b->config->workers = 0;
}

/* As useradd(8) has it: so a number is no name. */
static bool is_user_name(const char *name)
{
	size_t i;

	if (!*name || strlen(name) > USER_MAX || *name == '-')
		return false;
	for (i = 0; name[i]; i++)
		if (!isalnum((unsigned char)name[i]) &&
		    !strchr("_-.$", name[i]))
			return false;
	return strspn(name, DIGITS) < i;
}

void config_set_user(struct config_builder *b,
		     const struct config_location *at,
		     const struct config_word *user)
{
	if (!config_once(b, ONCE_USER, at, "user"))
		return;
	if (is_user_name(user->text))
		b->config->user = config_keep(b, user->text);
	else if (*user->text && !user->text[strspn(user->text, DIGITS)])
		config_error(b, &user->at,
			     "%s is a number; write the name of the user",
			     config_quote(b, user->text));
	else
		config_error(b, &user->at, "%s cannot be the name of a user",
			     config_quote(b, user->text));
}
