/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decision: from a client, a listener and the bytes so far to a backend,
 * a refusal, or "need more". It knows nothing of sockets.
 */
#ifndef HEADGATE_DECIDE_H
#define HEADGATE_DECIDE_H

#include "snapshot.h"
#include "tls.h"

enum decide_answer { DECIDE_NEED_MORE, DECIDE_BACKEND, DECIDE_REFUSE };

/* Which rule won; with the name it gives back the line of the log. */
enum decide_rule {
	RULE_NONE,
	RULE_LISTENER, /* `listen … to BACKEND` */
	RULE_ROUTE,
	RULE_DEFAULT,
	RULE_PLAIN, /* `default plain` */
};

struct decision {
	enum decide_answer answer;
	enum reason reason;   /* REFUSE */
	uint8_t alert;	      /* REFUSE: what the client is told; 0: nothing */
	unsigned int backend; /* BACKEND: index in the snapshot's set */
	enum decide_rule rule;
	const struct route *route; /* RULE_ROUTE */
	size_t need;		   /* NEED_MORE: bytes in all */
	size_t skip;		   /* of a PROXY header in front */
	bool has_proxied;	   /* then these are what it said */
	struct address client, destination;
	struct tls_hello hello; /* its name and ALPN; spans into `bytes` */
};

/*
 * What the client is told of a refusal: `alert`, or 0 where nothing may be
 * said, since the client spoke no TLS or `default drop` wants silence.
 */
uint8_t decide_alert(const struct snapshot *s, enum decide_rule rule,
		     uint8_t alert);

/* `peer`: who connected. The spans of `out` live as long as the arguments. */
void decide(const struct snapshot *s, const struct config_listen *listen,
	    const struct address *peer, struct span bytes,
	    struct tls_scratch *scratch, struct decision *out);

#endif
