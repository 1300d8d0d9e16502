// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RFC 8446, 4.1.2 (the hello) and 5.1 (records); RFC 6066, 3 (server_name);
 * RFC 7301, 3.1 (ALPN). What the router does not read it does not judge, but
 * every vector must end where it said: two readers that differ about where a
 * name lies could be led to two servers.
 */
#include "tls.h"

enum {
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_HEADER_LEN = 5,
	RECORD_MAX = 1 << 14, /* of plaintext */

	CLIENT_HELLO = 1,
	MESSAGE_HEADER_LEN = 4,
	/* version, random, and the shortest of the three vectors behind it */
	HELLO_MIN = 2 + 32 + 1 + 4 + 2,

	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ALPN = 16,
	NAME_TYPE_HOST = 0,
	LABEL_MAX = 63, /* RFC 1035, 2.3.4 */
};

/*
 * What a host name is made of: letters, digits and hyphen (RFC 1123, 2.1), and
 * the underscore that is in daily use. A byte that means something to a shell,
 * a log, a URL or a pattern is no part of a name, and neither are colons
 * (addresses, ports) and 8-bit bytes.
 */
enum {
	IN_NAME = 0x80,
	IN_QUAD = 0x01,	   /* in an IPv4 address in dotted decimal as well */
	LOWER_BITS = 0x60, /* one of them, set in the byte's lower case */
};

static const uint8_t host_bytes[256] = {
	['-'] = IN_NAME | 0x20,
	['.'] = IN_NAME | IN_QUAD | 0x20,
	['_'] = IN_NAME | 0x40,
	['0' ... '9'] = IN_NAME | IN_QUAD | 0x20,
	['A' ... 'Z'] = IN_NAME | 0x20,
	['a' ... 'z'] = IN_NAME | 0x20,
};

/* `ends`: of the labels, in order. */
static bool labels_are_sound(const uint8_t *ends, size_t nr_labels)
{
	unsigned int start = 0, nr_bad = 0;

	for (size_t i = 0; i < nr_labels; i++) {
		nr_bad += ends[i] - start - 1 >= LABEL_MAX; /* 0 too */
		start = ends[i] + 1u;
	}
	return !nr_bad;
}

/* No branch on a byte of the name: what it costs is not the client's choice. */
static enum reason parse_host_name(struct span name, struct tls_hello *out)
{
	uint8_t ends[TLS_NAME_MAX + 1], classes = 0xff;
	size_t nr_dots = 0;

	if (name.len && name.p[name.len - 1] == '.')
		name.len--;
	if (name.len > TLS_NAME_MAX)
		return REASON_SNI_INVALID;
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = name.p[i], class = host_bytes[c];

		classes &= class;
		out->name[i] = (char)(c | (class & LOWER_BITS));
		ends[nr_dots] = (uint8_t)i;
		nr_dots += c == '.';
	}
	ends[nr_dots] = (uint8_t)name.len;
	out->name[name.len] = '\0';
	/* RFC 1123, 2.1: a host name never has the form #.#.#.# */
	if (!(classes & IN_NAME) || (classes & IN_QUAD && nr_dots == 3) ||
	    !labels_are_sound(ends, nr_dots + 1))
		return REASON_SNI_INVALID;
	out->name_len = name.len;
	return REASON_NONE;
}

/*
 * Names of other types than host_name are passed over: they all begin with a
 * 16-bit length. A type may be there once.
 */
static enum reason parse_server_name(struct span data, struct tls_hello *out)
{
	uint64_t seen[4] = { 0 };
	struct span list, name;
	uint8_t type;

	if (!span_take_vector16(&data, &list) || data.len || !list.len)
		return REASON_SNI_INVALID;
	while (list.len) {
		if (!span_take_u8(&list, &type) ||
		    !span_take_vector16(&list, &name) ||
		    seen[type / 64] & UINT64_C(1) << type % 64)
			return REASON_SNI_INVALID;
		seen[type / 64] |= UINT64_C(1) << type % 64;
		if (type == NAME_TYPE_HOST && parse_host_name(name, out))
			return REASON_SNI_INVALID;
	}
	return REASON_NONE;
}

static enum reason parse_alpn(struct span data, struct tls_hello *out)
{
	struct span list, name;

	if (!span_take_vector16(&data, &list) || data.len || !list.len)
		return REASON_TLS_HELLO;
	out->alpn = list;
	while (list.len) {
		if (!tls_next_alpn(&list, &name) || !name.len)
			return REASON_TLS_HELLO;
	}
	return REASON_NONE;
}

/*
 * The types of extension so far: an exact set of 65,536 bits of which only
 * the words in use are ever cleared, so that neither a short hello pays for
 * its size nor a long one for comparing each type with each.
 */
struct type_set {
	uint64_t is_in_use[16];
	uint64_t words[1024];
};

/* false: it was there. */
static bool type_set_add(struct type_set *s, uint16_t type)
{
	uint64_t *word = &s->words[type / 64], bit = UINT64_C(1) << type % 64;
	uint64_t *in_use = &s->is_in_use[type / 4096];
	uint64_t in_use_bit = UINT64_C(1) << type / 64 % 64;

	if (!(*in_use & in_use_bit)) {
		*in_use |= in_use_bit;
		*word = 0;
	}
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

static enum reason parse_extensions(struct span block, struct tls_hello *out)
{
	enum reason why = REASON_NONE;
	struct type_set seen;
	struct span data;
	uint16_t type;

	memset(seen.is_in_use, 0, sizeof(seen.is_in_use));
	while (block.len && !why) {
		if (!span_take_u16(&block, &type) ||
		    !span_take_vector16(&block, &data))
			return REASON_TLS_HELLO;
		/* RFC 8446, 4.2: no more than one of a type, known or not */
		if (!type_set_add(&seen, type))
			return type == EXTENSION_SERVER_NAME
				       ? REASON_SNI_INVALID
				       : REASON_TLS_HELLO;
		if (type == EXTENSION_SERVER_NAME)
			why = parse_server_name(data, out);
		else if (type == EXTENSION_ALPN)
			why = parse_alpn(data, out);
	}
	return why;
}

static enum reason parse_body(struct span body, struct tls_hello *out)
{
	if (!span_take_u16(&body, &out->legacy_version) ||
	    !span_take(&body, 32, &out->random) ||
	    !span_take_vector8(&body, &out->session_id) ||
	    !span_take_vector16(&body, &out->cipher_suites) ||
	    !span_take_vector8(&body, &out->compression_methods))
		return REASON_TLS_HELLO;
	if (out->session_id.len > 32 || !out->cipher_suites.len ||
	    out->cipher_suites.len % 2 || !out->compression_methods.len)
		return REASON_TLS_HELLO;
	if (!body.len) /* RFC 5246, 7.4.1.2: no extensions at all */
		return REASON_NONE;
	if (!span_take_vector16(&body, &out->extensions) || body.len)
		return REASON_TLS_HELLO;
	return parse_extensions(out->extensions, out);
}

/* Field by field: the bytes of `name` are many and need no clearing. */
static void clear(struct tls_hello *h)
{
	h->reason = REASON_NONE;
	h->need = 0;
	h->name_len = 0;
	h->name[0] = '\0';
	h->legacy_version = 0;
	h->alpn = h->random = h->session_id = h->cipher_suites =
		h->compression_methods = h->extensions = span_of(NULL, 0);
}

/* Nothing of a refused hello is left for a caller to use by mistake. */
static enum tls_result refuse(struct tls_hello *h, enum reason why)
{
	clear(h);
	h->reason = why;
	return why == REASON_NOT_TLS ? TLS_NOT_TLS : TLS_MALFORMED;
}

static enum tls_result need_more(struct tls_hello *h, size_t need)
{
	h->need = need;
	return TLS_NEED_MORE;
}

/* `message` is whole, and its header was checked. */
static enum tls_result parse_message(struct span message, struct tls_hello *out)
{
	enum reason why;

	span_skip(&message, MESSAGE_HEADER_LEN);
	why = parse_body(message, out);
	if (why)
		return refuse(out, why);
	return out->name_len ? TLS_NAME : TLS_NO_NAME;
}

/* `total` becomes the length with the header, or stays 0: not known yet. */
static enum reason check_header(struct span message, size_t *total)
{
	uint32_t len;
	uint8_t type;

	if (!span_take_u8(&message, &type))
		return REASON_NONE;
	if (type != CLIENT_HELLO)
		return REASON_TLS_HELLO;
	if (!span_take_u24(&message, &len))
		return REASON_NONE;
	if (len > TLS_HELLO_MAX)
		return REASON_TLS_HELLO_LARGE;
	if (len < HELLO_MIN)
		return REASON_TLS_HELLO;
	*total = MESSAGE_HEADER_LEN + len;
	return REASON_NONE;
}

enum tls_result tls_parse_handshake(struct span message, struct tls_hello *out)
{
	size_t total = 0;
	enum reason why;

	clear(out);
	why = check_header(message, &total);
	if (why)
		return refuse(out, why);
	if (!total || message.len < total)
		return need_more(out, total ? total : message.len + 1);
	message.len = total;
	return parse_message(message, out);
}

/* How far a stream of records has been read. */
struct reader {
	struct span rest;    /* of the wire */
	struct span message; /* what came of it: in the wire, or the scratch */
	size_t total;	     /* of the message; 0: not known yet */
	size_t missing;	     /* of the last record, has not come */
	unsigned int nr_records;
	enum reason reason;
};

/* memcpy() costs more than all the rest of a record of one byte. */
static void copy(uint8_t *to, struct span from)
{
	if (from.len >= 16)
		memcpy(to, from.p, from.len);
	else
		for (size_t i = 0; i < from.len; i++)
			to[i] = from.p[i];
}

/* The message stays where it is while it lies in one record. */
static void append(struct reader *r, struct span fragment,
		   struct tls_scratch *scratch)
{
	if (!r->nr_records++) {
		r->message = fragment;
		return;
	}
	if (r->nr_records == 2) {
		copy(scratch->bytes, r->message);
		r->message.p = scratch->bytes;
	}
	copy(scratch->bytes + r->message.len, fragment);
	r->message.len += fragment.len;
}

/*
 * Takes one record, or what has come of it. false: the message is whole, or
 * the wire is at its end, or the record is refused.
 */
static bool take_record(struct reader *r, struct tls_scratch *scratch)
{
	struct span rest = r->rest, fragment;
	uint16_t len;

	if (!rest.len || (r->total && r->message.len == r->total))
		return false;
	r->reason = REASON_TLS_RECORD;
	if (rest.p[0] != RECORD_HANDSHAKE)
		return false;
	/* the version is for show (RFC 8446, 5.1) */
	if (!span_skip(&rest, 3) || !span_take_u16(&rest, &len)) {
		r->reason = REASON_NONE;
		return false;
	}
	/*
	 * A hello ends where its record ends, and no handshake record is empty
	 * (RFC 8446, 5.1). So while `total` is not known, what the scratch
	 * gets is less than a header and one record.
	 */
	if (!len || len > RECORD_MAX ||
	    (r->total && len > r->total - r->message.len))
		return false;
	r->missing = rest.len < len ? len - rest.len : 0;
	span_take(&rest, len - r->missing, &fragment);
	append(r, fragment, scratch);
	r->rest = rest;
	if (!r->total) {
		enum reason why = check_header(r->message, &r->total);

		if (why)
			r->reason = why;
		if (why || (r->total && r->message.len + r->missing > r->total))
			return false;
	}
	r->reason = REASON_NONE;
	return !r->missing;
}

/*
 * The fewest bytes that can complete the hello, in records as large as they
 * get. Records of one byte then cost a logarithm of looks, not one each: the
 * part that is missing shrinks by a sixth at least from look to look.
 */
static size_t least_need(const struct reader *r, struct span wire)
{
	size_t end = wire.len - r->rest.len + r->missing;
	size_t later;

	if (!r->total)
		return wire.len + 1;
	later = r->total - r->message.len - r->missing;
	return end + later +
	       (later + RECORD_MAX - 1) / RECORD_MAX * RECORD_HEADER_LEN;
}

/* RFC 5246, E.1: a server takes any version {3, x} in the first record. */
static bool may_be_tls(struct span wire)
{
	uint8_t type = 0, major = 0;

	return !span_take_u8(&wire, &type) ||
	       (type == RECORD_HANDSHAKE &&
		(!span_take_u8(&wire, &major) || major == 3));
}

enum tls_result tls_parse_records(struct span wire, struct tls_scratch *scratch,
				  struct tls_hello *out)
{
	struct reader r = { .rest = wire };

	clear(out);
	if (!may_be_tls(wire))
		return refuse(out, REASON_NOT_TLS);
	while (take_record(&r, scratch))
		;
	if (r.reason)
		return refuse(out, r.reason);
	if (!r.total || r.message.len < r.total)
		return need_more(out, least_need(&r, wire));
	return parse_message(r.message, out);
}

void tls_write_alert(uint8_t description, uint8_t out[TLS_ALERT_LEN])
{
	const uint8_t fatal = 2;
	const uint8_t alert[TLS_ALERT_LEN] = {
		RECORD_ALERT, 3, 3, 0, 2, fatal, description,
	};

	memcpy(out, alert, sizeof(alert));
}
