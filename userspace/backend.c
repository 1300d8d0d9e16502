// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balance.h"
#include "grace.h"

/* What one server of the configuration stands for when it is a name. */
struct addresses {
	struct address *list;
	size_t nr;
};

enum { PRIMARIES, BACKUPS, NR_GROUPS };

/* Immutable once a backend points to it. */
struct server_pool {
	struct server_pool *next;    /* among the retired */
	struct addresses *addresses; /* parallel to config->servers */
	unsigned int nr_addresses;
	struct balance groups[NR_GROUPS];
};

/* The pools that were replaced. */
static struct server_pool *retired;

/* The groups of a pool while they are put together. */
struct builder {
	const struct config_backend *config;
	struct balance_member *members[NR_GROUPS];
	unsigned int nr_members[NR_GROUPS];
	uint64_t serial; /* of the pool: what it has listed already */
};

static int add_server(struct builder *b, const struct config_server *config,
		      struct server *s)
{
	unsigned int group = config->is_backup ? BACKUPS : PRIMARIES;

	if (!s)
		return -ENOMEM;
	/* two names, or a name and an address, may mean the same server */
	if (s->listed_in == b->serial ||
	    b->nr_members[group] == BALANCE_MEMBERS_MAX)
		return 0;
	s->listed_in = b->serial;
	b->members[group][b->nr_members[group]++] = (struct balance_member){
		.server = s,
		.weight = config->weight ? config->weight : 1,
	};
	return 0;
}

static int add_config_server(struct builder *b,
			     const struct config_server *config,
			     const struct addresses *addresses)
{
	const char *name = b->config->name;
	size_t i;
	int err = 0;

	if (config->unix_path)
		return add_server(b, config,
				  server_find_path(name, config->unix_path));
	if (!config->host)
		return add_server(b, config,
				  server_find_address(name, &config->address));
	for (i = 0; i < addresses->nr && !err; i++)
		err = add_server(
			b, config,
			server_find_address(name, &addresses->list[i]));
	return err;
}

static void pool_free(struct server_pool *p)
{
	unsigned int i, group;

	if (!p)
		return;
	for (group = 0; group < NR_GROUPS; group++) {
		struct balance *b = &p->groups[group];

		for (i = 0; i < b->nr_members; i++)
			server_release(b->members[i].server);
		balance_fini(b);
	}
	for (i = 0; i < p->nr_addresses; i++)
		free(p->addresses[i].list);
	free(p->addresses);
	free(p);
}

/* Makes the groups of a pool whose addresses are known. */
static int pool_fill(struct server_pool *p, const struct config_backend *config)
{
	static uint64_t serial;
	struct builder b = { .config = config, .serial = ++serial };
	size_t most = config->nr_servers;
	unsigned int i, group;
	int err = 0;

	for (i = 0; i < p->nr_addresses; i++)
		most += p->addresses[i].nr;
	for (group = 0; group < NR_GROUPS; group++) {
		b.members[group] = calloc(most + 1, sizeof(**b.members));
		if (!b.members[group])
			err = -ENOMEM;
	}
	for (i = 0; i < config->nr_servers && !err; i++)
		err = add_config_server(&b, &config->servers[i],
					&p->addresses[i]);
	for (group = 0; group < NR_GROUPS && !err; group++) {
		err = balance_init(&p->groups[group], config->balance,
				   b.members[group], b.nr_members[group]);
		for (i = 0; i < p->groups[group].nr_members; i++)
			server_hold(b.members[group][i].server);
	}
	free(b.members[PRIMARIES]);
	free(b.members[BACKUPS]);
	return err;
}

static int copy_addresses(struct addresses *out, const struct address *list,
			  size_t nr, uint16_t port)
{
	size_t i;

	out->list = malloc((nr + 1) * sizeof(*list));
	if (!out->list)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		out->list[i] = list[i];
		out->list[i].port = port;
	}
	out->nr = nr;
	return 0;
}

/* A pool with the addresses of `from`, whose entries may be empty. */
static struct server_pool *pool_new(const struct config_backend *config,
				    const struct addresses *from)
{
	struct server_pool *p = calloc(1, sizeof(*p));
	unsigned int i;

	if (!p)
		return NULL;
	p->addresses = calloc(config->nr_servers + 1, sizeof(*p->addresses));
	if (!p->addresses)
		goto fail;
	p->nr_addresses = config->nr_servers;
	for (i = 0; i < config->nr_servers; i++)
		if (copy_addresses(&p->addresses[i], from[i].list, from[i].nr,
				   config->servers[i].address.port))
			goto fail;
	if (!pool_fill(p, config))
		return p;
fail:
	pool_free(p);
	return NULL;
}

static const struct backend *find_backend(const struct backend_set *set,
					  const char *name)
{
	unsigned int i;

	for (i = 0; set && i < set->nr_backends; i++)
		if (!strcmp(set->backends[i].config->name, name))
			return &set->backends[i];
	return NULL;
}

/* What the old backend knew of a name; the list stays the old pool's. */
static struct addresses known_addresses(const struct backend *old,
					const char *host)
{
	unsigned int i;

	for (i = 0; old && host && i < old->config->nr_servers; i++) {
		const char *old_host = old->config->servers[i].host;

		if (old_host && !strcmp(old_host, host))
			return old->pool->addresses[i];
	}
	return (struct addresses){ 0 };
}

static int backend_init(struct backend *b, const struct config_backend *config,
			const struct backend *old)
{
	struct addresses *from = calloc(config->nr_servers + 1, sizeof(*from));
	unsigned int i;

	if (!from)
		return -ENOMEM;
	for (i = 0; i < config->nr_servers; i++)
		from[i] = known_addresses(old, config->servers[i].host);
	b->config = config;
	b->pool = pool_new(config, from);
	free(from);
	return b->pool ? 0 : -ENOMEM;
}

struct backend_set *backend_set_new(const struct config *c,
				    const struct backend_set *old)
{
	struct backend_set *set = calloc(1, sizeof(*set));
	unsigned int i;

	if (!set)
		return NULL;
	set->backends = calloc(c->nr_backends + 1, sizeof(*set->backends));
	if (!set->backends)
		goto fail;
	for (i = 0; i < c->nr_backends; i++) {
		const struct config_backend *config = &c->backends[i];

		if (backend_init(&set->backends[i], config,
				 find_backend(old, config->name)))
			goto fail;
		set->nr_backends++;
	}
	return set;
fail:
	backend_set_free(set);
	return NULL;
}

void backend_set_free(struct backend_set *set)
{
	unsigned int i;

	if (!set)
		return;
	for (i = 0; i < set->nr_backends; i++)
		pool_free(set->backends[i].pool);
	free(set->backends);
	free(set);
}

static bool has_addresses(const struct addresses *known,
			  const struct address *list, size_t nr)
{
	size_t i;

	if (known->nr != nr)
		return false;
	for (i = 0; i < nr; i++)
		if (!address_equal_host(&known->list[i], &list[i]))
			return false;
	return true;
}

int backend_set_addresses(struct backend *b, unsigned int server_index,
			  const struct address *addresses, size_t nr)
{
	struct server_pool *old = b->pool, *pool;
	struct addresses *from;

	if (has_addresses(&old->addresses[server_index], addresses, nr))
		return 0;
	from = calloc(old->nr_addresses, sizeof(*from));
	if (!from)
		return -ENOMEM;
	memcpy(from, old->addresses, old->nr_addresses * sizeof(*from));
	from[server_index].list = (struct address *)addresses;
	from[server_index].nr = nr;
	pool = pool_new(b->config, from);
	free(from);
	if (!pool)
		return -ENOMEM;
	atomic_store_explicit(&b->pool, pool, memory_order_release);
	old->next = retired;
	retired = old;
	return 0;
}

static void free_retired(void)
{
	struct server_pool *p;

	if (!retired)
		return;
	grace_wait();
	while ((p = retired)) {
		retired = p->next;
		pool_free(p);
	}
}

void backend_collect(void)
{
	/*
	 * What a reader picked from a pool that is gone, it has counted as a
	 * connection by now, or dropped.
	 */
	free_retired();
	server_collect();
}

struct server *backend_pick(struct backend *b, const struct address *client,
			    uint32_t now_ms, const struct backend_tries *tries)
{
	const struct server_pool *pool =
		atomic_load_explicit(&b->pool, memory_order_acquire);
	struct balance_wish wish = {
		.client = client,
		.now_ms = now_ms,
		.tries = tries,
		.turn = &b->turn,
	};
	struct server *s = NULL;
	unsigned int group;

	wish.state = SERVER_UP;
	for (group = 0; group < NR_GROUPS && !s; group++)
		s = balance_choose(&pool->groups[group], &wish);
	wish.state = SERVER_FAILING;
	for (group = 0; group < NR_GROUPS && !s; group++)
		s = balance_choose(&pool->groups[group], &wish);
	return s;
}

void backend_for_each(struct backend *b, server_fn *fn, void *context)
{
	const struct server_pool *pool =
		atomic_load_explicit(&b->pool, memory_order_acquire);
	unsigned int group, i;

	for (group = 0; group < NR_GROUPS; group++)
		for (i = 0; i < pool->groups[group].nr_members; i++)
			fn(context, pool->groups[group].members[i].server);
}
