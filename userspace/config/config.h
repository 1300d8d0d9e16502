/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration: what the file says, validated, with every default filled
 * in. It is immutable once config_load() has returned it, and it knows nothing
 * of sockets, tables or threads: those are built from it.
 */
#ifndef HEADGATE_CONFIG_H
#define HEADGATE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../address.h"

#define CONFIG_WORKERS_MAX 256

enum { TRANSPORT_TCP = 1, TRANSPORT_QUIC = 2 }; /* bits of a set */

/* Where a thing was written; counted from 1. */
struct config_location {
	const char *file;
	unsigned int line, column;
};

enum config_target_kind {
	TARGET_UNSET,
	TARGET_BACKEND,
	TARGET_REFUSE, /* the TLS alert, or CONNECTION_CLOSE */
	TARGET_DROP,   /* closed without a word */
};

struct config_target {
	enum config_target_kind kind;
	unsigned int backend; /* index into backends[] */
};

struct config_interface {
	struct config_location at;
	char *name;
	bool may_be_generic, is_dormant;
};

/* `listen` and `guard`. AF_UNSPEC is every address, IPv4 and IPv6. */
struct config_listen {
	struct config_location at;
	struct address address;
	unsigned int transports;
	bool has_target; /* `to BACKEND`: forwarded without reading a byte */
	unsigned int backend;
};

enum config_balance {
	BALANCE_ROUND_ROBIN,
	BALANCE_LEAST_CONN,
	BALANCE_HASH, /* consistent, by client */
};

enum config_path { PATH_AUTO, PATH_LOCAL, PATH_NAT, PATH_RELAY };

enum { PROXY_TLV_ALPN = 1, PROXY_TLV_AUTHORITY = 2, PROXY_TLV_UNIQUE_ID = 4 };

/* Exactly one of: an address, a host name with a port, a unix socket. */
struct config_server {
	struct config_location at;
	struct address address; /* family AF_UNSPEC unless it is an address */
	char *host;		/* a name; the port is in address.port */
	char *unix_path;
	unsigned int weight; /* 1..256 */
	bool is_backup;
};

struct config_check {
	bool is_on;
	uint32_t interval_ms, timeout_ms;
	unsigned int rise, fall;
};

struct config_backend {
	struct config_location at;
	char *name;
	struct config_server *servers;
	unsigned int nr_servers;
	unsigned int proxy;	 /* 0: none; version 1 or 2 */
	unsigned int proxy_tlvs; /* PROXY_TLV_* set, version 2 only */
	enum config_balance balance;
	struct config_check check;
	unsigned int transports; /* what it can take */
	enum config_path path;
};

/* One `route` line: any of the patterns, any of the protocols. */
struct config_route {
	struct config_location at;
	char **patterns; /* lower case, no final dot: "a.b", "*.b", "*" */
	struct config_location *pattern_at;
	unsigned int nr_patterns;
	char **alpns; /* none: whatever the client offers */
	unsigned int nr_alpns;
	unsigned int transports;
	struct config_target target;
};

/* GCRA: `count` per `period_ms` with `burst` at once; off: count is 0. */
struct config_rate {
	bool is_set; /* written in the file; else a default */
	uint32_t count, period_ms, burst;
};

/*
 * The limits as the design page has them. A second tier of clients (a wider
 * prefix) is optional: count 0 when there is none.
 */
struct config_limits {
	uint32_t connections;		 /* in all; never off */
	uint32_t connections_per_client; /* 0: off */
	struct config_rate new_connections_second, new_connections_minute;
	struct config_rate quic_initials, syns, long_headers;
	struct config_tier {
		struct config_location at;
		unsigned int prefix_len; /* 0: no such tier */
		struct config_rate rate;
	} quic_initials_v4, quic_initials_v6, syns_v4, syns_v6;
	uint32_t penalty_ms; /* 0: off */
	uint64_t prove_yourself_bytes;
};

struct config_timeouts {
	uint32_t hello_ms, connect_ms, idle_ms, drain_ms;
};

/* When a busy connection leaves read/write for splice(2). */
struct config_relay {
	bool may_splice;
	uint64_t splice_after_bytes;
	uint32_t splice_after_ms;
};

enum config_log_format { LOG_LOGFMT, LOG_JSON };

struct config_log {
	enum config_log_format format;
	bool has_connections;	   /* a line per connection at its end */
	uint32_t refusals_per_sec; /* sampled; 0: none */
};

struct config_prefix {
	struct config_location at;
	struct prefix prefix;
	bool is_from_file; /* a line of a list file, not of the configuration */
};

/* `allow`, `block`, `trust proxy`: prefixes, those of files included. */
struct config_list {
	struct config_prefix *entries;
	size_t nr_entries;
	char **files; /* relative to the directory of the first file */
	size_t nr_files;
};

struct config {
	struct config_interface *interfaces;
	unsigned int nr_interfaces;
	struct config_listen *listens, *guards;
	unsigned int nr_listens, nr_guards;
	struct config_backend *backends;
	unsigned int nr_backends;
	struct config_route *routes;
	unsigned int nr_routes;
	struct config_target default_target; /* refuse, when not written */
	struct config_target default_plain;  /* drop, when not written */
	struct config_location default_at, default_plain_at; /* line 0: not */
	struct config_timeouts timeouts;
	struct config_relay relay;
	struct config_limits limits;
	struct config_log log;
	unsigned int client_prefix_v4, client_prefix_v6; /* 32, 64 */
	uint16_t reflector_ports[32];
	unsigned int nr_reflector_ports;
	struct config_list allow, block, trust_proxy;
	unsigned int workers; /* 0: one per core */
	char *user;	      /* NULL: headgate, or else nobody */

	char **file_names; /* owns what config_location.file points to */
	unsigned int nr_file_names;
	unsigned int *backends_by_name; /* indices, sorted by name */
	struct config_arena *memory;	/* every string, every small array */
};

/*
 * Called once for each error and each warning, in the order of the file, with
 * the whole line "FILE:LINE:COLUMN: error: …" or "…: warning: …", no newline.
 */
typedef void config_report_fn(void *context, bool is_error, const char *line);

/*
 * Reads, parses and validates. Returns NULL after at least one error was
 * reported; the caller owns the result. `text` (with `name` for the messages)
 * is read instead of a file by the second; there `include` and `file` work
 * relative to the current directory.
 */
struct config *config_load(const char *path, config_report_fn *report,
			   void *context);
struct config *config_parse(const char *name, const char *text, size_t len,
			    config_report_fn *report, void *context);
/*
 * The same for text that config_print() made `flat`, from a source that is
 * not to make us open files: `include` and `file` are errors.
 */
struct config *config_parse_flat(const char *name, const char *text, size_t len,
				 config_report_fn *report, void *context);
void config_free(struct config *c);

/*
 * Canonical text, every default spelled out, includes inlined. Parsing it
 * gives an equal configuration, and printing that gives the same text.
 * With `flat`, lists are printed entry by entry instead of as `file "…"`, so
 * that the text stands alone in a process that has no files.
 */
int config_print(const struct config *c, FILE *out, bool flat);

/* The index in backends[], or -1. */
int config_find_backend(const struct config *c, const char *name);

#endif
