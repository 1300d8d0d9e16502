/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One backend with servers in a row, built by hand. */
#ifndef HEADGATE_BACKEND_FIXTURE_H
#define HEADGATE_BACKEND_FIXTURE_H

#include "unit.h"

#include <stdlib.h>

#include "backend.h"

#define NOW 5000u

static const struct backend_tries no_tries __attribute__((unused));

static inline struct address v4(uint32_t ip, uint16_t port)
{
	return (struct address){ .family = AF_INET,
				 .port = port,
				 .v4.s_addr = htonl(ip) };
}

/* One backend "b" with servers 10.0.0.0:443, 10.0.0.1:443, … */
struct fixture {
	struct config config;
	struct config_backend backend;
	struct config_server servers[1024];
	struct backend_set *set;
	struct backend *b;
};

static inline struct fixture *
setup(enum config_balance balance, unsigned int nr, const unsigned int *weights)
{
	struct fixture *f = calloc(1, sizeof(*f));
	unsigned int i;

	assert_non_null(f);
	f->backend.name = (char *)"b";
	f->backend.servers = f->servers;
	f->backend.nr_servers = nr;
	f->backend.balance = balance;
	f->config.backends = &f->backend;
	f->config.nr_backends = 1;
	for (i = 0; i < nr; i++) {
		f->servers[i].address = v4(0x0a000000 + i, 443);
		f->servers[i].weight = weights ? weights[i] : 1;
	}
	return f;
}

static inline struct fixture *build(struct fixture *f)
{
	f->set = backend_set_new(&f->config, NULL);
	assert_non_null(f->set);
	f->b = &f->set->backends[0];
	return f;
}

static inline void count_server(void *context, struct server *s)
{
	(void)s;
	++*(unsigned int *)context;
}

static inline unsigned int nr_servers(struct backend *b)
{
	unsigned int nr = 0;

	backend_for_each(b, count_server, &nr);
	return nr;
}

static inline void teardown(struct fixture *f)
{
	backend_set_free(f->set);
	backend_collect();
	free(f);
}

static inline unsigned int index_of(const struct server *s)
{
	return ntohl(s->address.v4.s_addr) & 0xffffff;
}

static inline struct server *pick(struct fixture *f, uint32_t client)
{
	struct address a = v4(client, 50000);

	return backend_pick(f->b, &a, NOW, &no_tries);
}

/* The server with that index, as the pool has it. */
struct search {
	unsigned int index;
	struct server *found;
};

static inline void match_server(void *context, struct server *s)
{
	struct search *search = context;

	if (index_of(s) == search->index)
		search->found = s;
}

static inline struct server *server_at(struct fixture *f, unsigned int index)
{
	struct search search = { .index = index };

	backend_for_each(f->b, match_server, &search);
	assert_non_null(search.found);
	return search.found;
}

#endif
