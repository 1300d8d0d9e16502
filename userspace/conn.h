/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One TCP connection through the router: two descriptors and what is known of
 * the way between them. 512 bytes at most: it is all that an idle one holds.
 */
#ifndef HEADGATE_CONN_H
#define HEADGATE_CONN_H

#include <assert.h>
#include <sys/epoll.h>

#include "decide.h"
#include "loop.h"

enum conn_phase {
	CONN_FREE,
	CONN_HELLO,   /* its first bytes are awaited */
	CONN_CONNECT, /* a server is asked */
	CONN_RELAY,
	CONN_LINGER, /* the last word was said; the client's end is awaited */
	CONN_RESET,  /* what was forwarded goes out before the reset */
};

enum { CLIENT, SERVER };	/* sides[] */
enum { INBOUND, OUTBOUND };	/* flows[]: to the server, to the client */

/* Edge-triggered: a flag falls when the kernel said EAGAIN (or as good). */
struct conn_side {
	int fd;
	bool is_readable : 1, is_writable : 1;
	bool has_hangup : 1; /* EPOLLRDHUP came: read until the end shows */
	bool is_urgent : 1; /* EPOLLPRI came: a read stops short at the mark */
	bool is_watched : 1, is_watched_out : 1;
};

/*
 * One direction. Bytes are in the buffer or in the pipe, never in both; the
 * buffer of INBOUND also keeps the first bytes while a decision is awaited.
 */
struct conn_flow {
	struct buffer *buffer;
	struct pipe *pipe;
	uint64_t bytes; /* read from the source */
	bool is_ended;	/* the source has sent its FIN */
	bool is_shut;	/* and it was passed on */
	bool is_spliced;
};

enum conn_end {
	END_NONE,
	END_CLIENT_CLOSED, /* who sent the first FIN */
	END_SERVER_CLOSED,
	END_CLIENT_RESET,
	END_SERVER_RESET,
	END_IDLE,
	END_DRAINED,
	END_REFUSED,
};

#define CONN_ALPN_MAX 24 /* a longer one is cut */

struct conn {
	struct conn_side sides[2];
	union {
		struct conn_flow flows[2];
		struct {
			struct conn_flow inbound;
			struct backend_tries tries;
		} opening; /* until bytes flow: conn_end_opening() */
	};
	struct timer timer;
	uint64_t active_ms; /* last progress; what idle is counted from */
	uint8_t phase;
	uint8_t end;	/* enum conn_end */
	uint8_t reason; /* enum reason */
	uint8_t rule;	/* enum decide_rule */
	bool is_ready;	/* in the loop's list of that name */
	bool is_relayed;  /* counted in an engine, and the server's */
	bool is_splicing; /* in engine_splice, that is */
	bool has_spliced; /* at some time */
	bool has_id;	  /* the server was told its unique id */
	bool is_alpn_cut;
	bool has_proxied;
	bool has_route_alpn;
	uint8_t route_at; /* where in the name its pattern begins */
	bool is_route_exact;
	uint8_t name_len, alpn_len;
	struct conn *next, **pprev; /* free, ended; live */
	struct conn *next_ready;

	struct listener *listener;
	struct server *server;
	struct address client; /* the peer, or what its PROXY header says */
	uint64_t accepted_ms, serial;
	uint32_t need; /* CONN_HELLO: bytes before it is worth deciding */
	uint32_t skip; /* a PROXY header before the bytes that are kept */

	char alpn[CONN_ALPN_MAX];
	char name[TLS_NAME_MAX];
};

/* 512, and the pages around it are part of what one costs */
static_assert(sizeof(struct conn) <= 504, "an idle connection is small");
static_assert(sizeof(((struct conn *)0)->opening) <=
		      sizeof(((struct conn *)0)->flows),
	      "the opening has no room of its own");

/* Which side a flow comes from and goes to. */
static inline struct conn_side *conn_source(struct conn *c, unsigned int flow)
{
	return &c->sides[flow == INBOUND ? CLIENT : SERVER];
}

static inline struct conn_side *conn_sink(struct conn *c, unsigned int flow)
{
	return &c->sides[flow == INBOUND ? SERVER : CLIENT];
}

/* A short read has emptied the socket, unless it had a reason to be short. */
static inline bool conn_has_emptied(const struct conn_side *s, size_t len,
				    size_t room)
{
	return len < room && !s->has_hangup && !s->is_urgent;
}

/*
 * Epoll's 64 bits: the connection, and in the lowest bit the side. Other
 * things of a worker have the second bit set.
 */
#define CONN_TAG_OTHER 2ULL

/* Reserves the table; memory is used as connections come. 0 or -ENOMEM. */
int conn_table_init(struct loop *l, unsigned int nr);
void conn_table_fini(struct loop *l);

/* A connection with this client descriptor; NULL: the table is full. */
struct conn *conn_new(struct loop *l, int fd, struct listener *listener,
		      const struct address *client);

/* No other server will be tried: flows[OUTBOUND] is itself, and empty. */
void conn_end_opening(struct conn *c);

/* "<boot><worker><serial>" in 32 hexadecimal digits, not terminated. */
#define CONN_ID_LEN 32
void conn_write_id(const struct loop *l, const struct conn *c,
		   char out[CONN_ID_LEN + 1]);

/* Writes its line, closes, gives everything back. */
void conn_close(struct loop *l, struct conn *c);
/* The same, and both peers see a reset. */
void conn_reset(struct loop *l, struct conn *c);

/* After the events of a turn: what has ended in it may be used again. */
void conn_recycle(struct loop *l);

/*
 * Counts and logs a refusal and closes; with an alert (unless 0) as the last
 * word, for which the connection lingers a moment.
 */
void conn_refuse(struct loop *l, struct conn *c, enum reason reason,
		 uint8_t alert);
/* A server did not answer: one line for as long as it is marked for it. */
void conn_log_server_failure(struct loop *l, const struct server *s, int err);
/* A connection that was refused before it became one. */
void conn_refuse_at_accept(struct loop *l, const struct listener *listener,
			   const struct address *client, enum reason reason);

/* Has epoll tell of a side; `and_writable` for one that was full. 0, -errno */
int conn_watch(struct loop *l, struct conn *c, unsigned int side,
	       bool and_writable);

static inline uint64_t conn_tag(const struct conn *c, unsigned int side)
{
	return (uint64_t)(uintptr_t)c | side;
}

#endif
