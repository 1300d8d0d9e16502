/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one reader of a ClientHello: a pure function of the bytes so far. It
 * allocates nothing, keeps nothing, and its spans point into what it was
 * given (or into the scratch, when the hello was spread over records).
 */
#ifndef HEADGATE_TLS_H
#define HEADGATE_TLS_H

#include "../bpf/reasons.h"
#include "span.h"

/* A longer ClientHello is refused; the length is that of the message body. */
#define TLS_HELLO_MAX 32768
#define TLS_NAME_MAX 253

enum tls_result {
	TLS_NAME,	/* a whole hello with a name */
	TLS_NO_NAME,	/* a whole hello without one */
	TLS_NOT_TLS,	/* they do not begin a TLS handshake record */
	TLS_MALFORMED,	/* they do, but no sound ClientHello comes of it */
	TLS_NEED_MORE,	/* a proper prefix of one */
};

struct tls_hello {
	enum reason reason;	/* of NOT_TLS and MALFORMED */
	size_t need;		/* NEED_MORE: bytes in all before it is worth
				 * asking again; more than were given */
	size_t name_len;
	char name[TLS_NAME_MAX + 1]; /* lower case, no final dot, NUL */
	struct span alpn;	/* ProtocolNameList, checked; may be empty */

	/* for the fingerprints; as on the wire */
	uint16_t legacy_version;
	struct span random, session_id, cipher_suites, compression_methods;
	struct span extensions;
};

/* Where a hello that is spread over several records is put together. */
struct tls_scratch {
	uint8_t bytes[TLS_HELLO_MAX + 4];
};

/*
 * `wire`: a TCP stream from byte 0. Header first: "GET /" is not TLS, and the
 * first byte says so. What comes behind the hello's last record is not looked
 * at. An answer other than NEED_MORE is final: no further byte changes it.
 */
enum tls_result tls_parse_records(struct span wire, struct tls_scratch *scratch,
				  struct tls_hello *out);

/*
 * `message`: a handshake message with its four-byte header (TLS or QUIC), from
 * its first byte. What comes behind it is not looked at.
 */
enum tls_result tls_parse_handshake(struct span message,
				    struct tls_hello *out);

/* Takes the next name from an ALPN list that the parser has checked. */
static inline bool tls_next_alpn(struct span *list, struct span *name)
{
	return span_take_vector8(list, name);
}

/* A fatal alert record (RFC 8446, 6), of 7 bytes. */
#define TLS_ALERT_LEN 7
enum {
	TLS_ALERT_DECODE_ERROR = 50,
	TLS_ALERT_INTERNAL_ERROR = 80,
	TLS_ALERT_UNRECOGNIZED_NAME = 112,
};
void tls_write_alert(uint8_t description, uint8_t out[TLS_ALERT_LEN]);

#endif
