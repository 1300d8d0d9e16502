/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): one
 * reader, a pure function of the bytes so far, and one writer.
 */
#ifndef HEADGATE_PROXY_PROTOCOL_H
#define HEADGATE_PROXY_PROTOCOL_H

#include "address.h"
#include "span.h"

/* Header and TLVs of version 2 together; what the writer never exceeds. */
#define PROXY_HEADER_MAX 1024
/* The largest header that is read: 16 bytes and a 16-bit length. */
#define PROXY_READ_MAX (16 + 65535)

enum proxy_result {
	PROXY_OK,
	PROXY_ABSENT, /* these bytes can not begin a header */
	PROXY_MALFORMED,
	PROXY_NEED_MORE,
};

struct proxy_header {
	size_t len;  /* OK: of the header; the client's bytes follow */
	size_t need; /* NEED_MORE: as in tls.h; at most PROXY_READ_MAX */
	/*
	 * false for LOCAL, UNKNOWN and for families other than TCP over IPv4
	 * and IPv6: the connection's own addresses stand.
	 */
	bool has_addresses;
	struct address source, destination;
};

enum proxy_result proxy_parse(struct span wire, struct proxy_header *out);

/*
 * What is said of a connection. Empty spans are left out, and so is what does
 * not fit. An address that is AF_UNSPEC makes it UNKNOWN, or LOCAL with
 * nothing behind it.
 */
struct proxy_fields {
	struct address source, destination;
	struct span alpn;      /* one protocol */
	struct span authority; /* the server name */
	struct span unique_id; /* at most 128 bytes */
};

/*
 * Writes a header of version 1 (which has no TLVs) or 2 into `out`, which has
 * PROXY_HEADER_MAX bytes; returns its length. IPv4 next to IPv6 is written as
 * IPv6 in version 2 (mapped) and as TCP6 in version 1.
 */
size_t proxy_write(unsigned int version, const struct proxy_fields *f,
		   uint8_t *out);

#endif
