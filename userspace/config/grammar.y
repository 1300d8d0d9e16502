/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The language, one statement a line. The actions are in the files that
 * statement.h names; what a syntax error says is in syntax.c.
 */
%define api.pure full
%define api.prefix {config_yy}
%define api.token.prefix {T_}
%define api.location.type {struct config_location}
%define parse.error custom
%define parse.lac full
%locations
%lex-param { void *scanner }
%parse-param { struct config_builder *b } { struct config_source *source }
	{ void *scanner }

%code requires {
#include "config/source.h"
#include "config/statement.h"
}

%code {
#include "config/pending.h"
#include "config/report.h"
#include "config/syntax.h"

#define YYLLOC_DEFAULT(Current, Rhs, N)                                        \
	((Current) = (N) ? YYRHSLOC(Rhs, 1) : YYRHSLOC(Rhs, 0))

int config_yylex(CONFIG_YYSTYPE *value, CONFIG_YYLTYPE *at, void *scanner);

static void config_yyerror(const struct config_location *at,
			   struct config_builder *b,
			   struct config_source *source, void *scanner,
			   const char *text);
static void end_statement(struct config_builder *b);
}

%union {
	struct config_word word;
	struct config_transports transports;
	struct config_amount amount;
	struct {
		enum config_scope kind;
		struct config_word len;
	} scope;
	struct {
		enum config_target_kind kind;
		struct config_word name;
	} target;
	unsigned int number;
}

%token <word> WORD "word" STRING "string"
%token NEWLINE "end of line"
%token AFTER "after" ALLOW "allow" ALPN "alpn" AUTHORITY "authority"
	AUTO "auto" BACKEND "backend" BACKUP "backup" BALANCE "balance"
	BLOCK "block" BURST "burst" CHECK "check" CLIENT "client"
	CONNECT "connect" CONNECTIONS "connections" DEFAULT "default"
	DORMANT "dormant" DRAIN "drain" DROP "drop" EACH "each" EVERY "every"
	FALL "fall" FILE "file" GENERIC "generic" GUARD "guard" HASH "hash"
	HELLO "hello" IDLE "idle" INCLUDE "include" INTERFACE "interface"
	IPV4 "ipv4" IPV6 "ipv6" JSON "json" LEAST_CONN "least-conn"
	LIMIT "limit" LISTEN "listen" LISTENER "listener" LOCAL "local"
	LOG "log" LOGFMT "logfmt" LONG_HEADERS "long-headers" NAT "nat"
	NEW_CONNECTIONS "new-connections" OFF "off" ON "on" OR "or"
	PATH "path" PENALTY "penalty" PER "per" PLAIN "plain" PORTS "ports"
	PREFIX "prefix" PROVE_YOURSELF "prove-yourself" PROXY "proxy"
	QUIC "quic" QUIC_INITIALS "quic-initials" REFLECTOR "reflector"
	REFUSALS "refusals" REFUSE "refuse" RELAY "relay" RISE "rise"
	ROUND_ROBIN "round-robin" ROUTE "route" SPLICE "splice" SYNS "syns"
	TCP "tcp" TIMEOUT "timeout" TLV "tlv" TO "to" TRUST "trust"
	UNIQUE_ID "unique-id" USER "user" V1 "v1" V2 "v2" WEIGHT "weight"
	WORKERS "workers"

%type <word> value to_backend amount
%type <transports> transports
%type <amount> rate
%type <scope> scope
%type <target> target
%type <number> version tlvs tlv_list tlv balance path timeout log_switch

%%

file:
	%empty
|	file line
	{
		if (config_has_given_up(b))
			YYABORT;
	}
;

line:
	NEWLINE
|	statement NEWLINE	{ end_statement(b); }
|	error NEWLINE
	{
		config_abandon_backend(b);
		end_statement(b);
		yyerrok;
	}
;

statement:
	interface
|	listen
|	backend
|	route
|	default
|	limit
|	list_statement
|	setting
|	INCLUDE value		{ config_include(source, &$2); }
;

/* a keyword stands for itself where a name is due; elsewhere it is quoted */
value:
	WORD
|	STRING
;

interface:
	INTERFACE value interface_options
	{ config_add_interface(b, &@1, &$2); }
;

interface_options:
	%empty
|	interface_options GENERIC
	{ config_option_once(b, OPTION_GENERIC, &@2); }
|	interface_options DORMANT
	{ config_option_once(b, OPTION_DORMANT, &@2); }
;

listen:
	LISTEN value transports to_backend
	{ config_add_listen(b, &@1, &$2, &$3, &$4); }
|	GUARD value transports
	{ config_add_guard(b, &@1, &$2, &$3); }
;

transports:
	TCP		{ $$.set = TRANSPORT_TCP; $$.quic_at = @1; }
|	QUIC		{ $$.set = TRANSPORT_QUIC; $$.quic_at = @1; }
|	TCP QUIC
	{ $$.set = TRANSPORT_TCP | TRANSPORT_QUIC; $$.quic_at = @2; }
|	QUIC TCP
	{ $$.set = TRANSPORT_TCP | TRANSPORT_QUIC; $$.quic_at = @1; }
;

to_backend:
	%empty		{ $$.text = NULL; }
|	TO value	{ $$ = $2; }
;

backend:
	BACKEND value	{ config_begin_backend(b, &$2); }
	servers backend_options
	{ config_end_backend(b); }
;

servers:
	server
|	servers ',' server
;

server:
	value		{ config_add_server(b, &$1); }
	server_options
;

server_options:
	%empty
|	server_options WEIGHT value
	{ config_set_weight(b, &@2, &$3); }
|	server_options BACKUP
	{ config_set_backup(b, &@2); }
;

backend_options:
	%empty
|	backend_options backend_option
;

backend_option:
	PROXY version tlvs
	{ config_set_proxy(b, &@1, $2, $3); }
|	BALANCE balance
	{
		if (config_option_once(b, OPTION_BALANCE, &@1))
			b->backend.balance = $2;
	}
|	CHECK TCP
	{
		config_option_once(b, OPTION_CHECK, &@1);
		b->backend.check.is_on = true;
	}
	check_options
|	TCP
	{
		config_option_once(b, OPTION_TCP, &@1);
		b->backend.transports |= TRANSPORT_TCP;
	}
|	QUIC
	{
		config_option_once(b, OPTION_QUIC, &@1);
		b->backend.transports |= TRANSPORT_QUIC;
	}
|	PATH path	{ config_set_path(b, &@1, $2); }
;

version:
	V1		{ $$ = 1; }
|	V2		{ $$ = 2; }
;

tlvs:
	%empty		{ $$ = 0; }
|	TLV tlv_list	{ $$ = $2; }
;

tlv_list:
	tlv
|	tlv_list ',' tlv	{ $$ = $1 | $3; }
;

tlv:
	ALPN		{ $$ = PROXY_TLV_ALPN; }
|	AUTHORITY	{ $$ = PROXY_TLV_AUTHORITY; }
|	UNIQUE_ID	{ $$ = PROXY_TLV_UNIQUE_ID; }
;

balance:
	ROUND_ROBIN	{ $$ = BALANCE_ROUND_ROBIN; }
|	LEAST_CONN	{ $$ = BALANCE_LEAST_CONN; }
|	HASH		{ $$ = BALANCE_HASH; }
;

path:
	AUTO		{ $$ = PATH_AUTO; }
|	LOCAL		{ $$ = PATH_LOCAL; }
|	NAT		{ $$ = PATH_NAT; }
|	RELAY		{ $$ = PATH_RELAY; }
;

check_options:
	%empty
|	check_options EVERY value
	{ config_set_check_time(b, &@2, OPTION_CHECK_EVERY, &$3); }
|	check_options TIMEOUT value
	{ config_set_check_time(b, &@2, OPTION_CHECK_TIMEOUT, &$3); }
|	check_options RISE value
	{ config_set_check_count(b, &@2, OPTION_CHECK_RISE, &$3); }
|	check_options FALL value
	{ config_set_check_count(b, &@2, OPTION_CHECK_FALL, &$3); }
;

route:
	ROUTE		{ config_begin_route(b, &@1); }
	patterns route_options target
	{ config_end_route(b, $5.kind, &$5.name); }
;

patterns:
	value			{ config_add_pattern(b, &$1); }
|	patterns ',' value	{ config_add_pattern(b, &$3); }
;

route_options:
	%empty
|	route_options ALPN
	{ config_option_once(b, OPTION_ALPN, &@2); }
	alpns
|	route_options TCP
	{
		config_option_once(b, OPTION_TCP, &@2);
		b->route.transports |= TRANSPORT_TCP;
	}
|	route_options QUIC
	{
		config_option_once(b, OPTION_QUIC, &@2);
		config_set_route_quic(b, &@2);
	}
;

alpns:
	value			{ config_add_alpn(b, &$1); }
|	alpns ',' value		{ config_add_alpn(b, &$3); }
;

target:
	TO value	{ $$.kind = TARGET_BACKEND; $$.name = $2; }
|	REFUSE		{ $$.kind = TARGET_REFUSE; }
|	DROP		{ $$.kind = TARGET_DROP; }
;

default:
	DEFAULT target
	{ config_set_default(b, &@1, false, $2.kind, &$2.name); }
|	DEFAULT PLAIN target
	{ config_set_default(b, &@1, true, $3.kind, &$3.name); }
;

limit:
	LIMIT CONNECTIONS amount
	{ config_set_connections(b, &@1, &$3); }
|	LIMIT CONNECTIONS amount PER CLIENT
	{ config_set_client_connections(b, &@1, &$3); }
|	LIMIT NEW_CONNECTIONS rate PER CLIENT
	{ config_set_new_connections(b, &@1, &$3); }
|	LIMIT QUIC_INITIALS rate PER scope
	{
		config_set_quic_initials(b, &@1, &$3, $5.kind,
					 &$5.len);
	}
|	LIMIT SYNS rate PER scope
	{ config_set_syns(b, &@1, &$3, $5.kind, &$5.len); }
|	LIMIT LONG_HEADERS rate ON EACH LISTENER
	{ config_set_long_headers(b, &@1, &$3); }
|	LIMIT PENALTY amount
	{ config_set_penalty(b, &@1, &$3); }
|	LIMIT PROVE_YOURSELF amount
	{ config_set_prove_yourself(b, &@1, &$3); }
|	CLIENT PREFIX IPV4 value
	{ config_set_client_prefix(b, &@1, SCOPE_V4, &$4); }
|	CLIENT PREFIX IPV6 value
	{ config_set_client_prefix(b, &@1, SCOPE_V6, &$4); }
;

amount:
	value
|	OFF		{ $$.text = NULL; $$.at = @1; }
;

rate:
	amount		{ $$.value = $1; $$.burst.text = NULL; }
|	value BURST value	{ $$.value = $1; $$.burst = $3; }
;

scope:
	CLIENT		{ $$.kind = SCOPE_CLIENT; }
|	IPV4 value	{ $$.kind = SCOPE_V4; $$.len = $2; }
|	IPV6 value	{ $$.kind = SCOPE_V6; $$.len = $2; }
;

list_statement:
	list prefixes
;

list:
	ALLOW
	{
		config_warn_pending(b, FEATURE_ALLOW, &@1);
		b->list = &b->config->allow;
	}
|	BLOCK
	{
		config_warn_pending(b, FEATURE_BLOCK, &@1);
		b->list = &b->config->block;
	}
|	TRUST PROXY	{ b->list = &b->config->trust_proxy; }
;

prefixes:
	prefix
|	prefixes ',' prefix
;

prefix:
	value		{ config_add_prefix(b, &$1); }
|	FILE value	{ config_add_list_file(source, &$2); }
;

setting:
	TIMEOUT timeout value
	{ config_set_timeout(b, &@1, $2, &$3); }
|	RELAY SPLICE AFTER value OR value
	{ config_set_relay(b, &@1, &$4, &$6); }
|	RELAY SPLICE OFF
	{ config_set_relay_off(b, &@1); }
|	LOG LOGFMT	{ config_set_log_format(b, &@1, LOG_LOGFMT); }
|	LOG JSON	{ config_set_log_format(b, &@1, LOG_JSON); }
|	LOG CONNECTIONS log_switch
	{ config_set_log_connections(b, &@1, $3); }
|	LOG REFUSALS amount
	{ config_set_log_refusals(b, &@1, &$3); }
|	REFLECTOR PORTS
	{ config_begin_reflector_ports(b, &@1); }
	reflector_ports
|	WORKERS value	{ config_set_workers(b, &@1, &$2); }
|	WORKERS AUTO	{ config_set_workers(b, &@1, NULL); }
|	USER value	{ config_set_user(b, &@1, &$2); }
;

timeout:
	HELLO		{ $$ = TIMEOUT_HELLO; }
|	CONNECT		{ $$ = TIMEOUT_CONNECT; }
|	IDLE		{ $$ = TIMEOUT_IDLE; }
|	DRAIN		{ $$ = TIMEOUT_DRAIN; }
;

log_switch:
	ON		{ $$ = true; }
|	OFF		{ $$ = false; }
;

reflector_ports:
	OFF
|	ports
;

ports:
	value		{ config_add_reflector_port(b, &$1); }
|	ports ',' value	{ config_add_reflector_port(b, &$3); }
;

%%

static void config_yyerror(const struct config_location *at,
			   struct config_builder *b,
			   struct config_source *source, void *scanner,
			   const char *text)
{
	(void)source;
	(void)scanner;
	/* of the parser's own: its stack */
	config_error(b, at, "%s", text);
}

/* `include` needs its words no more when an inner file comes here. */
static void end_statement(struct config_builder *b)
{
	b->seen = 0;
	config_arena_clear(b->line);
}

static int yyreport_syntax_error(const yypcontext_t *context,
				 struct config_builder *b,
				 struct config_source *source, void *scanner)
{
	yysymbol_kind_t kinds[YYNTOKENS];
	struct config_syntax_error e = {
		.at = *yypcontext_location(context),
	};
	int i, nr = yypcontext_expected_tokens(context, kinds, YYNTOKENS);

	(void)b;
	(void)scanner;
	for (i = 0; i < nr; i++) {
		if (kinds[i] == YYSYMBOL_WORD || kinds[i] == YYSYMBOL_STRING)
			e.wants_value = true;
		else if (kinds[i] != YYSYMBOL_YYEOF)
			e.expected[e.nr_expected++] =
				yysymbol_name(kinds[i]);
	}
	config_report_syntax(source, &e);
	return 0;
}
