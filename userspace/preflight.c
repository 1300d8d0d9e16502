// SPDX-License-Identifier: GPL-2.0-or-later
#include "preflight.h"

#include <errno.h>
#include <stdio.h>

#include "log.h"
#include "outcome.h"
#include "privilege.h"

static void print_line(void *context, bool is_error, const char *line)
{
	(void)context;
	(void)is_error;
	fprintf(stderr, "%s\n", line);
}

/* It may be made between the check and the start, so it is no error. */
static void check_user(const char *path, const struct config *c)
{
	struct privilege_user user;

	if (privilege_find_user(c->user, &user))
		fprintf(stderr,
			"%s: warning: there is no user %s on this host, and "
			"headgated does not start without\n",
			path, c->user ? c->user : "nobody");
	else if (user.is_nobody && !c->user)
		fprintf(stderr,
			"%s: warning: there is no user headgate on this host, "
			"and the router will run as nobody\n",
			path);
}

int preflight_check(const char *path)
{
	struct config *c = config_load(path, print_line, NULL);

	if (!c)
		return -EINVAL;
	check_user(path, c);
	config_free(c);
	fprintf(stderr, "%s: the configuration is fine\n", path);
	return 0;
}

static void keep_line(void *context, bool is_error, const char *line)
{
	(void)is_error;
	outcome_keep(context, line);
}

static void print_lines(const struct outcome *o)
{
	unsigned int i;

	for (i = 0; i < o->nr_lines; i++)
		fprintf(stderr, "%s\n", o->lines[i]);
	if (o->nr_more)
		fprintf(stderr, "and %u more lines like these\n", o->nr_more);
}

static void log_lines(const struct outcome *o)
{
	unsigned int i;

	for (i = 0; i < o->nr_lines; i++)
		log_say(LOG_WARNING, "%s", o->lines[i]);
	if (o->nr_more)
		log_say(LOG_WARNING, "and %u more lines like these",
			o->nr_more);
}

struct config *preflight_load(const char *path)
{
	struct outcome o = { 0 };
	struct config *c = config_load(path, keep_line, &o);

	if (c) {
		log_set_format(c->log.format);
		log_lines(&o);
	} else {
		print_lines(&o);
	}
	outcome_fini(&o);
	return c;
}
