// SPDX-License-Identifier: GPL-2.0-or-later
#include "decide.h"

#include "proxy_protocol.h"

static void refuse(struct decision *out, enum reason reason, uint8_t alert)
{
	out->answer = DECIDE_REFUSE;
	out->reason = reason;
	out->alert = alert;
}

static bool is_trusted(const struct config_list *trusted,
		       const struct address *peer)
{
	size_t i;

	for (i = 0; i < trusted->nr_entries; i++)
		if (prefix_contains(&trusted->entries[i].prefix, peer))
			return true;
	return false;
}

/* false: there is an answer already. */
static bool strip_proxy_header(struct span *bytes, struct decision *out)
{
	struct proxy_header header;

	switch (proxy_parse(*bytes, &header)) {
	case PROXY_ABSENT:
		return true;
	case PROXY_NEED_MORE:
		out->answer = DECIDE_NEED_MORE;
		out->need = header.need;
		return false;
	case PROXY_MALFORMED:
		refuse(out, REASON_PROXY_HEADER, 0);
		return false;
	case PROXY_OK:
		break;
	}
	out->skip = header.len;
	span_skip(bytes, header.len);
	if (header.has_addresses) {
		out->has_proxied = true;
		out->client = header.source;
		out->destination = header.destination;
	}
	return true;
}

static void follow(const struct config_target *target, enum reason reason,
		   struct decision *out)
{
	switch (target->kind) {
	case TARGET_BACKEND:
		out->answer = DECIDE_BACKEND;
		out->backend = target->backend;
		break;
	case TARGET_DROP:
		refuse(out, reason, 0);
		break;
	case TARGET_UNSET:
	case TARGET_REFUSE:
		refuse(out, reason, TLS_ALERT_UNRECOGNIZED_NAME);
		break;
	}
}

static void route_name(const struct snapshot *s, struct decision *out)
{
	struct span name = span_of(out->hello.name, out->hello.name_len);

	out->route = route_find(s->routes, name, out->hello.alpn,
				TRANSPORT_TCP);
	if (out->route) {
		out->rule = RULE_ROUTE;
		follow(&out->route->target, REASON_ROUTE_REFUSED, out);
		return;
	}
	out->rule = RULE_DEFAULT;
	follow(&s->config->default_target,
	       name.len ? REASON_NAME_UNKNOWN : REASON_NAME_MISSING, out);
}

static void route_plain(const struct snapshot *s, struct decision *out)
{
	const struct config_target *target = &s->config->default_plain;

	if (target->kind != TARGET_BACKEND) {
		refuse(out, out->hello.reason, 0);
		return;
	}
	out->rule = RULE_PLAIN;
	follow(target, REASON_NONE, out);
}

static uint8_t alert_of(enum reason reason)
{
	return reason == REASON_SNI_INVALID ? TLS_ALERT_UNRECOGNIZED_NAME :
					      TLS_ALERT_DECODE_ERROR;
}

uint8_t decide_alert(const struct snapshot *s, enum decide_rule rule,
		     uint8_t alert)
{
	switch (rule) {
	case RULE_LISTENER:
	case RULE_PLAIN:
		return 0;
	case RULE_ROUTE: /* it says refuse or drop itself */
		return alert;
	case RULE_NONE:
	case RULE_DEFAULT:
		break;
	}
	return s->config->default_target.kind == TARGET_DROP ? 0 : alert;
}

void decide(const struct snapshot *s, const struct config_listen *listen,
	    const struct address *peer, struct span bytes,
	    struct tls_scratch *scratch, struct decision *out)
{
	out->reason = REASON_NONE;
	out->rule = RULE_NONE;
	out->route = NULL;
	out->skip = 0;
	out->has_proxied = false;
	out->hello.name_len = 0;
	out->hello.alpn = span_of(NULL, 0);

	if (listen->has_target) {
		out->answer = DECIDE_BACKEND;
		out->backend = listen->backend;
		out->rule = RULE_LISTENER;
		return;
	}
	if (is_trusted(&s->config->trust_proxy, peer) &&
	    !strip_proxy_header(&bytes, out))
		return;

	switch (tls_parse_records(bytes, scratch, &out->hello)) {
	case TLS_NEED_MORE:
		out->answer = DECIDE_NEED_MORE;
		out->need = out->skip + out->hello.need;
		break;
	case TLS_NOT_TLS:
		route_plain(s, out);
		break;
	case TLS_MALFORMED:
		refuse(out, out->hello.reason, alert_of(out->hello.reason));
		break;
	case TLS_NAME:
	case TLS_NO_NAME:
		route_name(s, out);
		break;
	}
	if (out->answer == DECIDE_REFUSE)
		out->alert = decide_alert(s, out->rule, out->alert);
}
