// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshot.h"

#include <stdlib.h>

struct snapshot *snapshot_current;

struct snapshot *snapshot_new(struct config *c, const struct snapshot *previous)
{
	static uint64_t generation;
	/* a listen line makes a listener for each transport */
	size_t nr_listeners = 2 * (size_t)c->nr_listens;
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s) {
		config_free(c);
		return NULL;
	}
	s->config = c;
	s->generation = ++generation;
	s->listeners = calloc(nr_listeners + 1, sizeof(*s->listeners));
	s->routes = route_table_new(c);
	s->backends = backend_set_new(c, previous ? previous->backends : NULL);
	if (s->listeners && s->routes && s->backends)
		return s;
	snapshot_free(s);
	return NULL;
}

const struct config_listen *
snapshot_find_listen(const struct snapshot *s, const struct listener *listener)
{
	unsigned int i;

	for (i = 0; i < s->nr_listeners; i++)
		if (s->listeners[i].listener == listener)
			return s->listeners[i].config;
	return NULL;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	backend_set_free(s->backends);
	route_table_free(s->routes);
	free(s->listeners);
	config_free(s->config);
	free(s);
}
