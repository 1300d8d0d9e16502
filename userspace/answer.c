// SPDX-License-Identifier: GPL-2.0-or-later
#include "answer.h"

#include <ares.h>
#include <string.h>

static int compare(const struct address *a, const struct address *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* 0.0.0.0 and :: would be this host, and nobody means that by a name. */
static bool is_usable(const struct address *a)
{
	if (a->family == AF_INET)
		return a->v4.s_addr != htonl(INADDR_ANY) &&
		       !IN_MULTICAST(ntohl(a->v4.s_addr));
	return !IN6_IS_ADDR_UNSPECIFIED(&a->v6) &&
	       !IN6_IS_ADDR_MULTICAST(&a->v6);
}

void answer_add(struct answer *a, const struct address *new)
{
	size_t at = a->nr;
	int order = 1;

	while (at && (order = compare(new, &a->list[at - 1])) < 0)
		at--;
	if (at && order == 0)
		return;
	if (at == ANSWER_ADDRESSES_MAX)
		return;
	if (a->nr == ANSWER_ADDRESSES_MAX)
		a->nr--;
	memmove(&a->list[at + 1], &a->list[at],
		(a->nr - at) * sizeof(*a->list));
	a->list[at] = *new;
	a->nr++;
}

static void shorten_ttl(struct answer *a, int ttl_s)
{
	if (ttl_s < a->ttl_s)
		a->ttl_s = ttl_s;
}

void answer_read(struct answer *out, const struct ares_addrinfo *info)
{
	const struct ares_addrinfo_cname *alias;
	const struct ares_addrinfo_node *node;
	struct address a;

	out->nr = 0;
	out->ttl_s = ANSWER_TTL_MAX_S;
	for (node = info->nodes; node; node = node->ai_next) {
		shorten_ttl(out, node->ai_ttl);
		if (address_from_sockaddr(node->ai_addr, &a))
			continue;
		a.port = 0;
		if (is_usable(&a))
			answer_add(out, &a);
	}
	for (alias = info->cnames; alias; alias = alias->next)
		shorten_ttl(out, alias->ttl);
	if (out->ttl_s < ANSWER_TTL_MIN_S)
		out->ttl_s = ANSWER_TTL_MIN_S;
}

bool answer_equal(const struct answer *a, const struct answer *b)
{
	size_t i;

	if (a->nr != b->nr)
		return false;
	for (i = 0; i < a->nr; i++)
		if (!address_equal(&a->list[i], &b->list[i]))
			return false;
	return true;
}

static bool has_family(const struct answer *a, unsigned int family)
{
	size_t i;

	for (i = 0; i < a->nr; i++)
		if (a->list[i].family == family)
			return true;
	return false;
}

bool answer_has_lost(const struct answer *a, const struct answer *before,
		     unsigned int family)
{
	return has_family(before, family) && !has_family(a, family);
}

void answer_add_lost(struct answer *a, const struct answer *before)
{
	bool has_v4 = has_family(a, AF_INET), has_v6 = has_family(a, AF_INET6);
	size_t i;

	for (i = 0; i < before->nr; i++)
		if (before->list[i].family == AF_INET ? !has_v4 : !has_v6)
			answer_add(a, &before->list[i]);
}
