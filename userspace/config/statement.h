/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the grammar calls: one function a statement, or a part of one. They
 * check what can be checked without the other statements, and report errors
 * themselves. Inside of config/ only.
 */
#ifndef HEADGATE_CONFIG_STATEMENT_H
#define HEADGATE_CONFIG_STATEMENT_H

#include "builder.h"

struct config_source;

/* Options that stand once in a statement: bits of `seen`. */
enum config_option {
	OPTION_GENERIC,
	OPTION_DORMANT,
	OPTION_WEIGHT,
	OPTION_BACKUP,
	OPTION_PROXY,
	OPTION_BALANCE,
	OPTION_CHECK,
	OPTION_CHECK_EVERY,
	OPTION_CHECK_TIMEOUT,
	OPTION_CHECK_RISE,
	OPTION_CHECK_FALL,
	OPTION_PATH,
	OPTION_TCP,
	OPTION_QUIC,
	OPTION_ALPN,
	NR_OPTIONS
};

/* Reports the second of a kind: false. */
bool config_option_once(struct config_builder *b, enum config_option option,
			const struct config_location *at);

/* TRANSPORT_ bits, and where `quic` stands among them. */
struct config_transports {
	unsigned int set;
	struct config_location quic_at;
};

/* frontend.c */
void config_add_interface(struct config_builder *b,
			  const struct config_location *at,
			  const struct config_word *name);
/* `target` without a text: none. */
void config_add_listen(struct config_builder *b,
		       const struct config_location *at,
		       const struct config_word *address,
		       const struct config_transports *transports,
		       const struct config_word *target);
void config_add_guard(struct config_builder *b,
		      const struct config_location *at,
		      const struct config_word *address,
		      const struct config_transports *transports);
void config_add_reflector_port(struct config_builder *b,
			       const struct config_word *port);
void config_begin_reflector_ports(struct config_builder *b,
				  const struct config_location *at);

/* backends.c: the backend that is being read is b->backend */
void config_begin_backend(struct config_builder *b,
			  const struct config_word *name);
void config_add_server(struct config_builder *b,
		       const struct config_word *server);
void config_set_weight(struct config_builder *b,
		       const struct config_location *at,
		       const struct config_word *weight);
void config_set_backup(struct config_builder *b,
		       const struct config_location *at);
void config_set_proxy(struct config_builder *b,
		      const struct config_location *at, unsigned int version,
		      unsigned int tlvs);
void config_set_check_time(struct config_builder *b,
			   const struct config_location *at,
			   enum config_option which,
			   const struct config_word *time);
void config_set_check_count(struct config_builder *b,
			    const struct config_location *at,
			    enum config_option which,
			    const struct config_word *count);
void config_set_path(struct config_builder *b,
		     const struct config_location *at, enum config_path path);
void config_end_backend(struct config_builder *b);
/* After a syntax error: its name is known all the same. */
void config_abandon_backend(struct config_builder *b);
bool config_has_unix_server(const struct config_backend *backend);

/* routing.c: the route that is being read is b->route */
void config_begin_route(struct config_builder *b,
			const struct config_location *at);
void config_add_pattern(struct config_builder *b,
			const struct config_word *pattern);
void config_add_alpn(struct config_builder *b, const struct config_word *alpn);
void config_set_route_quic(struct config_builder *b,
			   const struct config_location *at);
/* `name` is that of a TARGET_BACKEND. */
void config_end_route(struct config_builder *b, enum config_target_kind kind,
		      const struct config_word *name);
void config_set_default(struct config_builder *b,
			const struct config_location *at, bool is_plain,
			enum config_target_kind kind,
			const struct config_word *name);

/* limits.c; a value without a text is `off` */
enum config_scope { SCOPE_CLIENT, SCOPE_V4, SCOPE_V6 };

struct config_amount {
	struct config_word value, burst; /* burst without a text: none */
};

void config_set_connections(struct config_builder *b,
			    const struct config_location *at,
			    const struct config_word *count);
void config_set_client_connections(struct config_builder *b,
				   const struct config_location *at,
				   const struct config_word *count);
void config_set_new_connections(struct config_builder *b,
				const struct config_location *at,
				const struct config_amount *a);
/* The prefix length is of SCOPE_V4 and SCOPE_V6. */
void config_set_quic_initials(struct config_builder *b,
			      const struct config_location *at,
			      const struct config_amount *a,
			      enum config_scope scope,
			      const struct config_word *prefix_len);
void config_set_syns(struct config_builder *b,
		     const struct config_location *at,
		     const struct config_amount *a, enum config_scope scope,
		     const struct config_word *prefix_len);
void config_set_long_headers(struct config_builder *b,
			     const struct config_location *at,
			     const struct config_amount *a);
void config_set_penalty(struct config_builder *b,
			const struct config_location *at,
			const struct config_word *time);
void config_set_prove_yourself(struct config_builder *b,
			       const struct config_location *at,
			       const struct config_word *size);
void config_set_client_prefix(struct config_builder *b,
			      const struct config_location *at,
			      enum config_scope scope,
			      const struct config_word *prefix_len);

/* setting.c */
enum config_timeout { TIMEOUT_HELLO, TIMEOUT_CONNECT, TIMEOUT_IDLE,
		      TIMEOUT_DRAIN };

void config_set_timeout(struct config_builder *b,
			const struct config_location *at,
			enum config_timeout which,
			const struct config_word *time);
void config_set_relay(struct config_builder *b,
		      const struct config_location *at,
		      const struct config_word *size,
		      const struct config_word *time);
void config_set_relay_off(struct config_builder *b,
			  const struct config_location *at);
void config_set_log_format(struct config_builder *b,
			   const struct config_location *at,
			   enum config_log_format format);
void config_set_log_connections(struct config_builder *b,
				const struct config_location *at, bool is_on);
void config_set_log_refusals(struct config_builder *b,
			     const struct config_location *at,
			     const struct config_word *rate);
/* NULL: `auto`. */
void config_set_workers(struct config_builder *b,
			const struct config_location *at,
			const struct config_word *count);
void config_set_user(struct config_builder *b,
		     const struct config_location *at,
		     const struct config_word *user);
void config_set_defaults(struct config *c);

/* prefixes.c: the list that is being read is *b->list */
void config_add_prefix(struct config_builder *b,
		       const struct config_word *prefix);
void config_add_list_file(struct config_source *s,
			  const struct config_word *path);
/* Reads the files of all lists, after the statements. */
void config_read_lists(struct config_builder *b);

#endif
