// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * headgate sniff: what the router would read in the connections of a capture.
 * A pipe is read as it comes: tcpdump -Uw - port 443 | headgate sniff -
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture.h"
#include "command.h"
#include "sniffer.h"
#include "stats.h"

#define READ_SIZE (256u << 10)

static const struct sniffer_limits limits = {
	.nr_connections = 65536,
	.nr_bytes = 64u << 20,
};

static const char *const result_names[] = {
	[TLS_NAME] = "name",	       [TLS_NO_NAME] = "no-name",
	[TLS_NOT_TLS] = "not-tls",     [TLS_MALFORMED] = "malformed",
	[TLS_NEED_MORE] = "need-more",
};

/* A client's bytes as Latin-1, so that any of them make valid UTF-8. */
static json_t *json_bytes(struct span s)
{
	char utf8[2 * 255];
	size_t len = 0;

	for (size_t i = 0; i < s.len && i < 255; i++) {
		if (s.p[i] < 0x80) {
			utf8[len++] = (char)s.p[i];
		} else {
			utf8[len++] = (char)(0xc0 | s.p[i] >> 6);
			utf8[len++] = (char)(0x80 | (s.p[i] & 0x3f));
		}
	}
	return json_stringn(utf8, len);
}

static json_t *json_alpn(struct span list)
{
	json_t *array = json_array();
	struct span name;

	while (tls_next_alpn(&list, &name))
		json_array_append_new(array, json_bytes(name));
	return array;
}

static json_t *json_report(const struct sniffer_report *r)
{
	const struct tls_hello *h = r->hello;
	char client[ADDRESS_TEXT], server[ADDRESS_TEXT];

	address_format(&r->client, client, sizeof(client));
	address_format(&r->server, server, sizeof(server));
	return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:s, s:s?}", "transport",
			 "tcp", "src", client, "dst", server, "sni",
			 h->name_len ? h->name : NULL, "alpn",
			 json_alpn(h->alpn), "result", result_names[r->result],
			 "reason", h->reason ? reason_name(h->reason) : NULL);
}

/* Escapes are in ASCII: a name can not speak to the terminal. */
static void print_json(void *context, const struct sniffer_report *r)
{
	bool *has_failed = context;
	json_t *report = json_report(r);

	if (!report ||
	    json_dumpf(report, stdout, JSON_COMPACT | JSON_ENSURE_ASCII))
		*has_failed = true;
	putchar('\n');
	json_decref(report);
}

static void print_bytes(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] > ' ' && s.p[i] < 0x7f && s.p[i] != '\\' &&
		    s.p[i] != ',')
			putchar(s.p[i]);
		else
			printf("\\x%02x", s.p[i]);
	}
}

static void print_text(void *context, const struct sniffer_report *r)
{
	const struct tls_hello *h = r->hello;
	char client[ADDRESS_TEXT], server[ADDRESS_TEXT];
	struct span list = h->alpn, name;
	const char *before = "  alpn ";

	(void)context;
	printf("%s -> %s  %s",
	       address_format(&r->client, client, sizeof(client)),
	       address_format(&r->server, server, sizeof(server)),
	       result_names[r->result]);
	if (h->name_len)
		printf(" %s", h->name);
	if (h->reason)
		printf(" (%s: %s)", reason_name(h->reason),
		       reason_text(h->reason));
	for (; tls_next_alpn(&list, &name); before = ",") {
		fputs(before, stdout);
		print_bytes(name);
	}
	putchar('\n');
}

/* A file that is read piece by piece. */
struct input {
	const char *name;
	int fd;
	uint8_t *buffer;
	size_t size;
	struct span rest; /* of the buffer: read, and not taken yet */
};

static int input_open(struct input *in, const char *path)
{
	memset(in, 0, sizeof(*in));
	in->name = strcmp(path, "-") ? path : "standard input";
	in->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				   : dup(STDIN_FILENO);
	return in->fd < 0 ? -errno : 0;
}

/* The number of bytes that came, 0 at the end, or -errno. */
static ssize_t input_read(struct input *in)
{
	size_t len = in->rest.len, size = in->size;
	ssize_t n;

	if (len)
		memmove(in->buffer, in->rest.p, len);
	if (size - len < READ_SIZE) {
		uint8_t *buffer = realloc(in->buffer, size + len + READ_SIZE);

		if (!buffer)
			return -ENOMEM;
		in->buffer = buffer;
		in->size = size + len + READ_SIZE;
	}
	/* a reader at the other end of a live capture waits for no buffer */
	fflush(stdout);
	do
		n = read(in->fd, in->buffer + len, in->size - len);
	while (n < 0 && errno == EINTR);
	in->rest = span_of(in->buffer, len + (n > 0 ? (size_t)n : 0));
	return n < 0 ? -errno : n;
}

static void input_close(struct input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	free(in->buffer);
}

static int fail_with(const struct input *in, int err)
{
	fflush(stdout);
	fprintf(stderr, "headgate: %s: %s\n", in->name, strerror(-err));
	return COMMAND_FAILED;
}

static int refuse_file(const struct input *in)
{
	static const struct {
		const char *magic, *command;
	} compressed[] = {
		{ "\x1f\x8b", "zcat" },
		{ "\x28\xb5\x2f\xfd", "zstdcat" },
		{ "\xfd"
		  "7zXZ",
		  "xzcat" },
		{ "BZh", "bzcat" },
	};

	for (size_t i = 0; i < sizeof(compressed) / sizeof(compressed[0]);
	     i++) {
		size_t len = strlen(compressed[i].magic);

		if (in->rest.len < len ||
		    memcmp(in->rest.p, compressed[i].magic, len))
			continue;
		fprintf(stderr,
			"headgate: %s: compressed; try '%s FILE | "
			"headgate sniff -'\n",
			in->name, compressed[i].command);
		return COMMAND_USAGE;
	}
	fprintf(stderr,
		"headgate: %s: not a capture, neither pcap nor pcapng\n",
		in->name);
	return COMMAND_USAGE;
}

/* How the file ended: whole, cut, or damaged. */
static int end_of_file(const struct input *in, const struct capture *c,
		       enum capture_result last)
{
	if (c->format == CAPTURE_UNKNOWN)
		return refuse_file(in);
	if (last == CAPTURE_MORE && !in->rest.len)
		return COMMAND_OK;
	fflush(stdout);
	fprintf(stderr, "headgate: %s: the file is %s after %llu frames\n",
		in->name, last == CAPTURE_MORE ? "cut off" : "damaged",
		(unsigned long long)c->nr_frames);
	return COMMAND_FAILED;
}

static int read_all(struct input *in, struct capture *c, struct sniffer *s)
{
	struct capture_frame frame;
	enum capture_result result;
	ssize_t n = 0;
	int err;

	for (;;) {
		result = capture_next(c, &in->rest, &frame);
		if (result == CAPTURE_INVALID)
			break;
		if (result == CAPTURE_FRAME) {
			err = sniffer_add(s, &frame);
			if (err)
				return fail_with(in, err);
			continue;
		}
		n = input_read(in);
		if (n < 0)
			return fail_with(in, (int)n);
		if (!n)
			break;
	}
	return end_of_file(in, c, result);
}

static void warn(const char *what, uint64_t nr)
{
	if (nr)
		fprintf(stderr, "headgate: warning: %llu %s\n",
			(unsigned long long)nr, what);
}

/* What the answers may suffer from. */
static void print_warnings(const struct capture *c, const struct sniffer *s)
{
	const struct sniffer_counters *n = sniffer_counters(s);

	warn("frames were cut by the capture's snapshot length", c->nr_cut);
	warn("frames belong to no interface that the file describes",
	     c->nr_unassigned);
	warn("IP fragments were passed over", n->nr_fragments);
	warn("frames with a damaged header were passed over", n->nr_damaged);
	warn("segments were too far out of order, and not kept",
	     n->nr_not_kept);
	warn("connections were reported early, to make room for others",
	     n->nr_given_up);
	warn("reported connections were forgotten, to make room for others; "
	     "what they sent later may be reported again",
	     n->nr_forgotten);
	if (!n->nr_segments && c->nr_frames)
		warn("frames, and no TCP segment among them", c->nr_frames);
}

static int sniff(struct input *in, bool is_json)
{
	static struct capture capture;
	bool has_failed = false;
	struct sniffer *s;
	int status;

	s = sniffer_new(&limits, is_json ? print_json : print_text,
			&has_failed);
	if (!s)
		return fail_with(in, -ENOMEM);
	capture_init(&capture);
	status = read_all(in, &capture, s);
	sniffer_finish(s);
	if (fflush(stdout) || ferror(stdout) || has_failed) {
		fprintf(stderr, "headgate: cannot write the output\n");
		status = COMMAND_FAILED;
	}
	print_warnings(&capture, s);
	sniffer_free(s);
	return status;
}

static int usage(FILE *out, int status)
{
	fprintf(out, "usage: headgate sniff [--json] FILE.pcap|-\n\n"
		     "One line for each TCP connection of a capture (pcap, "
		     "pcapng): what the router\nreads in it. '-' is standard "
		     "input, and may be a live capture.\n\n"
		     "  -j, --json  one JSON object a line\n");
	return status;
}

int command_sniff(int argc, char **argv, const struct command_options *o)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool is_json = false;
	struct input in;
	int opt, err, status;

	(void)o;
	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		if (opt == 'h')
			return usage(stdout, COMMAND_OK);
		if (opt != 'j')
			return usage(stderr, COMMAND_USAGE);
		is_json = true;
	}
	if (argc - optind != 1)
		return usage(stderr, COMMAND_USAGE);
	err = input_open(&in, argv[optind]);
	status = err ? fail_with(&in, err) : sniff(&in, is_json);
	input_close(&in);
	return status;
}
