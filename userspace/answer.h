/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the DNS said of a name: usable addresses in order, each once, and how
 * long they are good. Equal answers are equal however the server turned them.
 */
#ifndef HEADGATE_ANSWER_H
#define HEADGATE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "address.h"

/* More addresses of one name are left out, the highest first. */
#define ANSWER_ADDRESSES_MAX 64

#define ANSWER_TTL_MIN_S 1
#define ANSWER_TTL_MAX_S 3600

struct answer {
	struct address list[ANSWER_ADDRESSES_MAX]; /* ports are zero */
	size_t nr;
	int ttl_s; /* the least of all, within the bounds above */
};

struct ares_addrinfo;

void answer_read(struct answer *out, const struct ares_addrinfo *info);
void answer_add(struct answer *a, const struct address *new);
bool answer_equal(const struct answer *a, const struct answer *b);

/* `before` had addresses of that family, and `a` has none. */
bool answer_has_lost(const struct answer *a, const struct answer *before,
		     unsigned int family);
/* Adds the addresses of `before` whose family was lost. */
void answer_add_lost(struct answer *a, const struct answer *before);

#endif
