/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A configuration in the making: what the statements have said so far, and
 * what is to be looked up once all of them are known. Inside of config/ only.
 *
 * Out of memory is noted here and looked at once, at the end: until then the
 * functions go on with what there is.
 */
#ifndef HEADGATE_CONFIG_BUILDER_H
#define HEADGATE_CONFIG_BUILDER_H

#include "arena.h"
#include "config.h"

/* Statements that a configuration has once. */
enum config_once {
	ONCE_DEFAULT,
	ONCE_DEFAULT_PLAIN,
	ONCE_TIMEOUT, /* and the three behind it, by enum config_timeout */
	ONCE_TIMEOUT_LAST = ONCE_TIMEOUT + 3,
	ONCE_RELAY,
	ONCE_CONNECTIONS,
	ONCE_CONNECTIONS_PER_CLIENT,
	ONCE_NEW_CONNECTIONS_SECOND,
	ONCE_NEW_CONNECTIONS_MINUTE,
	ONCE_QUIC_INITIALS, /* by enum config_scope, as the next */
	ONCE_QUIC_INITIALS_LAST = ONCE_QUIC_INITIALS + 2,
	ONCE_SYNS,
	ONCE_SYNS_LAST = ONCE_SYNS + 2,
	ONCE_LONG_HEADERS,
	ONCE_PENALTY,
	ONCE_PROVE_YOURSELF,
	ONCE_CLIENT_PREFIX_V4,
	ONCE_CLIENT_PREFIX_V6,
	ONCE_REFLECTOR_PORTS,
	ONCE_LOG_FORMAT,
	ONCE_LOG_CONNECTIONS,
	ONCE_LOG_REFUSALS,
	ONCE_WORKERS,
	ONCE_USER,
	NR_ONCE
};

/* A word of the file, with its escapes undone; lives as long as its line. */
struct config_word {
	const char *text;
	struct config_location at;
};

/* The name of a backend, to be looked up when all backends are known. */
struct config_reference {
	char *name;
	struct config_location at;
	enum config_reference_kind {
		REFERENCE_LISTEN,
		REFERENCE_ROUTE,
		REFERENCE_DEFAULT,
		REFERENCE_DEFAULT_PLAIN,
	} kind;
	unsigned int index; /* of the listen or route */
};

/* `file "…"` of a list, to be read when all statements are known. */
struct config_list_file {
	struct config_list *list;
	const char *path;
	struct config_location at;
};

struct config_message;

struct config_builder {
	struct config *config;
	struct config_arena *line; /* cleared after each statement */
	bool may_open;		   /* `include` and `file` */
	bool is_out_of_memory;
	const char *root; /* directory of the first file, "" or with its '/' */

	struct config_message *messages;
	size_t nr_messages;
	unsigned int nr_errors, nr_warnings;
	struct config_location unshown_at; /* the first warning too many */

	struct config_location once[NR_ONCE];
	struct config_reference *references;
	size_t nr_references;
	struct config_list_file *list_files;
	size_t nr_list_files;

	/* of the statement that is being read */
	struct config_backend backend;
	struct config_route route;
	struct config_list *list;
	unsigned int seen; /* its options, by enum config_option */
};

/* NULL: out of memory. */
struct config_builder *config_builder_new(void);
void config_builder_free(struct config_builder *b);

/* A copy that lives as long as the configuration. */
char *config_keep(struct config_builder *b, const char *text);

/* A zeroed element more for a heap array; NULL: out of memory. */
#define config_append(b, array, nr)                                            \
	({                                                                     \
		__typeof__(array) appended = config_append_to(                 \
			(b), &(array), sizeof(*(array)), (nr));                \
		if (appended)                                                  \
			(nr)++;                                                \
		appended;                                                      \
	})
void *config_append_to(struct config_builder *b, void *array, size_t size,
		       size_t nr);

/* Remembers where; false, with the error reported: it was there before. */
bool config_once(struct config_builder *b, enum config_once key,
		 const struct config_location *at, const char *what);

void config_refer(struct config_builder *b, const struct config_word *name,
		  enum config_reference_kind kind, unsigned int index);

/* "ab/c.conf" beside "x/y.conf" is "x/ab/c.conf"; NULL: out of memory. */
char *config_beside(struct config_builder *b, const char *file,
		    const char *path);

#endif
