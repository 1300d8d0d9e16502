/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IP addresses with a port, and prefixes. An IPv4-mapped IPv6 address is its
 * IPv4 address from the moment it enters the program.
 */
#ifndef HEADGATE_ADDRESS_H
#define HEADGATE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
	uint16_t family; /* AF_INET, AF_INET6; AF_UNSPEC is "any" or "none" */
	uint16_t port;	 /* host order */
	uint32_t scope;	 /* interface index of a link-local address */
	union {
		uint8_t bytes[16]; /* first: an initialiser clears them all */
		struct in_addr v4;
		struct in6_addr v6;
	};
};

struct prefix {
	struct address base; /* host bits and port are zero */
	uint8_t len;	     /* 0..32 or 0..128 */
};

/* "[2001:db8::1]:65535" with "%4294967295", and the NUL */
#define ADDRESS_TEXT 72

/* ::ffff:192.0.2.1 becomes 192.0.2.1; anything else stays as it is. */
void address_unmap(struct address *a);

/* Without a port; IPv6 with brackets or none. false: not an address. */
bool address_parse_host(const char *text, struct address *out);

/* "192.0.2.1:443", "[2001:db8::1]:443"; ":443" is AF_UNSPEC. */
bool address_parse(const char *text, struct address *out);

/* Both write at most `size` bytes with the NUL and return `buf`. */
const char *address_format(const struct address *a, char *buf, size_t size);
const char *address_format_host(const struct address *a, char *buf,
				size_t size);

bool address_equal(const struct address *a, const struct address *b);
bool address_equal_host(const struct address *a, const struct address *b);

/* -EAFNOSUPPORT: neither AF_INET nor AF_INET6. */
int address_from_sockaddr(const struct sockaddr *sa, struct address *out);

/* Returns the length; AF_UNSPEC becomes the IPv6 wildcard. */
socklen_t address_to_sockaddr(const struct address *a,
			      struct sockaddr_storage *out);

/*
 * "192.0.2.0/24" or a bare address. Host bits that are set: -EINVAL with
 * `out` filled with the prefix that was meant; not a prefix: -EBADMSG.
 */
int prefix_parse(const char *text, struct prefix *out);
const char *prefix_format(const struct prefix *p, char *buf, size_t size);
bool prefix_contains(const struct prefix *p, const struct address *a);

#endif
