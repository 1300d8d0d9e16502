/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every refusal, once. The enum, the counters, the log texts, the metrics and
 * the JSON are all made from this list. A name is for ever: scripts count by
 * it. X(NAME, name, text): the text ends the sentence "refused because …".
 */
#ifndef HEADGATE_REASONS_H
#define HEADGATE_REASONS_H

#define REASONS(X)                                                             \
	X(NONE, none, "it was not refused")                                    \
	/* the first message of a connection */                                \
	X(NOT_TLS, not_tls, "the first bytes are not a TLS ClientHello")       \
	X(TLS_RECORD, tls_record, "a TLS record is malformed")                 \
	X(TLS_HELLO, tls_hello, "the ClientHello is malformed")                \
	X(TLS_HELLO_LARGE, tls_hello_large, "the ClientHello is too large")    \
	X(SNI_INVALID, sni_invalid, "the server name is not a host name")      \
	X(HELLO_TIMEOUT, hello_timeout, "no whole ClientHello came in time")   \
	X(HELLO_EOF, hello_eof, "the client left before a whole ClientHello")  \
	/* the decision */                                                     \
	X(NAME_UNKNOWN, name_unknown, "no route serves this name")             \
	X(NAME_MISSING, name_missing, "the client sent no name")               \
	X(ROUTE_REFUSED, route_refused, "the route says refuse or drop")       \
	/* the server */                                                       \
	X(NO_SERVER, no_server, "no server of the backend is up")              \
	X(CONNECT_FAILED, connect_failed, "no server accepted a connection")   \
	X(CONNECT_TIMEOUT, connect_timeout, "no server answered in time")      \
	X(CLIENT_GONE, client_gone, "the client left before a server answered") \
	/* PROXY protocol from trusted addresses */                            \
	X(PROXY_HEADER, proxy_header, "the PROXY header is malformed")         \
	/* our own limits */                                                   \
	X(CONNECTIONS_TOTAL, connections_total, "the router is full")          \
	X(DESCRIPTORS, descriptors, "the process is out of descriptors")       \
	X(MEMORY, memory, "the process is out of memory")                      \
	X(DRAINING, draining, "the router is stopping")

enum reason {
#define X(NAME, name, text) REASON_##NAME,
	REASONS(X)
#undef X
	NR_REASONS
};

#endif
