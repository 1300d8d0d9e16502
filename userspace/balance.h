/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Choosing one of a group of servers. A group is immutable; workers choose
 * without a lock and without allocating.
 */
#ifndef HEADGATE_BALANCE_H
#define HEADGATE_BALANCE_H

#include "config/config.h"
#include "server.h"

struct balance_member {
	struct server *server;
	uint32_t weight; /* at least 1 */
};

/* Members are named by 16 bits in the tables. */
#define BALANCE_MEMBERS_MAX 65535

struct balance {
	enum config_balance kind;
	unsigned int nr_members, nr_turns, nr_cells;
	struct balance_member *members;
	uint16_t *turns; /* round robin and least-conn: whose turn it is */
	uint16_t *cells; /* hash: whose cell it is */
};

/* Copies the members. 0 or -ENOMEM, and then there is nothing to undo. */
int balance_init(struct balance *b, enum config_balance kind,
		 const struct balance_member *members, unsigned int nr);
void balance_fini(struct balance *b);

struct balance_wish {
	const struct address *client;
	uint32_t now_ms;
	enum server_state state; /* that the server must be in */
	const struct backend_tries *tries;
	_Atomic uint32_t *turn; /* the backend's */
};

/* NULL: no member is in that state and untried. */
struct server *balance_choose(const struct balance *b,
			      const struct balance_wish *wish);

#endif
