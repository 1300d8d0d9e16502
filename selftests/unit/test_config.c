// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"

#define MANY 100000
/* thirty times what it takes; a quadratic step takes minutes */
#define SECONDS_MAX 10

struct messages {
	unsigned int nr_errors, nr_warnings;
	char first_error[256], last[256];
};

static void note(void *context, bool is_error, const char *line)
{
	struct messages *m = context;

	if (is_error && !m->nr_errors)
		snprintf(m->first_error, sizeof(m->first_error), "%s", line);
	snprintf(m->last, sizeof(m->last), "%s", line);
	if (is_error)
		m->nr_errors++;
	else
		m->nr_warnings++;
}

static struct config *parse(const char *text, struct messages *m)
{
	memset(m, 0, sizeof(*m));
	return config_parse("test.conf", text, strlen(text), note, m);
}

static struct config *parse_good(const char *text)
{
	struct messages m;
	struct config *c = parse(text, &m);

	if (!c)
		print_error("%s\n", m.first_error);
	assert_non_null(c);
	assert_int_equal(m.nr_errors, 0);
	return c;
}

static char *print(const struct config *c, bool flat, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	assert_non_null(out);
	assert_int_equal(config_print(c, out, flat), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* A text that is written piece by piece. */
struct writer {
	char *text;
	size_t len;
	FILE *out;
};

static void begin(struct writer *w)
{
	*w = (struct writer){ 0 };
	w->out = open_memstream(&w->text, &w->len);
	assert_non_null(w->out);
}

static void end(struct writer *w)
{
	assert_int_equal(fclose(w->out), 0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char example[] =
	"interface eth0 generic\n"
	"listen :443 tcp quic\n"
	"listen [2001:db8::1]:80 tcp to site\n"
	"guard :8853 quic\n"
	"backend site 127.0.0.1:8443 proxy v2 tlv alpn, unique-id\n"
	"backend two Example.ORG.:443 weight 3, unix:/run/x backup "
	"balance hash check tcp every 1min fall 9\n"
	"route A.Example., *.b.example alpn \"h2\", \"\\x01\\\"\" to site\n"
	"route * refuse\n"
	"default drop\n"
	"default plain to two\n"
	"timeout idle 1h\n"
	"limit syns 7/min burst 8 per ipv6 48\n"
	"limit new-connections off per client\n"
	"allow 192.0.2.0/24\n"
	"block 2001:db8::/32, 198.51.100.1\n"
	"trust proxy 10.0.0.0/8\n"
	"reflector ports off\n"
	"user nobody\n";

static void fields(void **state)
{
	struct config *c = parse_good(example);

	(void)state;
	assert_int_equal(c->nr_listens, 2);
	assert_int_equal(c->listens[0].transports,
			 TRANSPORT_TCP | TRANSPORT_QUIC);
	assert_int_equal(c->listens[0].address.family, AF_UNSPEC);
	assert_int_equal(c->listens[0].at.line, 2);
	assert_true(c->listens[1].has_target);
	assert_int_equal(c->nr_backends, 2);
	assert_int_equal(c->backends[0].proxy, 2);
	assert_int_equal(c->backends[0].proxy_tlvs,
			 PROXY_TLV_ALPN | PROXY_TLV_UNIQUE_ID);
	assert_string_equal(c->backends[1].servers[0].host, "example.org");
	assert_int_equal(c->backends[1].servers[0].address.port, 443);
	assert_int_equal(c->backends[1].servers[0].weight, 3);
	assert_string_equal(c->backends[1].servers[1].unix_path, "/run/x");
	assert_true(c->backends[1].servers[1].is_backup);
	assert_int_equal(c->backends[1].check.interval_ms, 60000);
	assert_int_equal(c->backends[1].check.fall, 9);
	assert_int_equal(c->backends[1].transports, TRANSPORT_TCP);
	assert_int_equal(c->nr_routes, 2);
	assert_string_equal(c->routes[0].patterns[0], "a.example");
	assert_string_equal(c->routes[0].patterns[1], "*.b.example");
	assert_string_equal(c->routes[0].alpns[1], "\x01\"");
	assert_int_equal(c->routes[0].pattern_at[1].column, 19);
	assert_int_equal(c->routes[1].target.kind, TARGET_REFUSE);
	assert_int_equal(c->default_target.kind, TARGET_DROP);
	assert_int_equal(c->default_plain.backend, 1);
	assert_int_equal(c->timeouts.idle_ms, 3600000);
	assert_int_equal(c->limits.syns_v6.prefix_len, 48);
	assert_int_equal(c->limits.syns_v6.rate.count, 7);
	assert_int_equal(c->limits.syns_v6.rate.period_ms, 60000);
	assert_int_equal(c->limits.syns_v6.rate.burst, 8);
	assert_int_equal(c->limits.new_connections_second.count, 0);
	assert_int_equal(c->limits.new_connections_minute.count, 0);
	assert_int_equal(c->block.nr_entries, 2);
	assert_int_equal(c->block.entries[1].prefix.len, 32);
	assert_int_equal(c->nr_reflector_ports, 0);
	assert_string_equal(c->user, "nobody");
	config_free(c);
}

static void defaults(void **state)
{
	struct config *c = parse_good("listen :443 tcp\n");

	(void)state;
	assert_int_equal(c->default_target.kind, TARGET_REFUSE);
	assert_int_equal(c->default_plain.kind, TARGET_DROP);
	assert_int_equal(c->default_at.line, 0);
	assert_int_equal(c->timeouts.hello_ms, 5000);
	assert_int_equal(c->timeouts.connect_ms, 5000);
	assert_int_equal(c->timeouts.idle_ms, 600000);
	assert_int_equal(c->timeouts.drain_ms, 30000);
	assert_true(c->relay.may_splice);
	assert_int_equal(c->relay.splice_after_bytes, 65536);
	assert_int_equal(c->relay.splice_after_ms, 5000);
	assert_int_equal(c->limits.connections, 4000);
	assert_int_equal(c->limits.connections_per_client, 64);
	assert_int_equal(c->limits.new_connections_second.burst, 40);
	assert_int_equal(c->limits.new_connections_minute.burst, 300);
	assert_false(c->limits.syns.is_set);
	assert_int_equal(c->limits.syns_v4.prefix_len, 0);
	assert_int_equal(c->limits.prove_yourself_bytes, 32 << 20);
	assert_int_equal(c->client_prefix_v4, 32);
	assert_int_equal(c->client_prefix_v6, 64);
	assert_int_equal(c->nr_reflector_ports, 6);
	assert_int_equal(c->log.refusals_per_sec, 10);
	assert_int_equal(c->workers, 0);
	assert_null(c->user);
	config_free(c);
}

static void check_round_trip(const char *text, bool flat)
{
	struct config *c = parse_good(text), *again;
	struct messages m = { 0 };
	char *first, *second;
	size_t len, second_len;

	first = print(c, flat, &len);
	again = flat ? config_parse_flat("flat", first, len, note, &m)
		     : config_parse("again", first, len, note, &m);
	assert_non_null(again);
	second = print(again, flat, &second_len);
	assert_string_equal(first, second);
	assert_int_equal(again->nr_routes, c->nr_routes);
	assert_memory_equal(&again->timeouts, &c->timeouts,
			    sizeof(c->timeouts));
	assert_int_equal(again->block.nr_entries, c->block.nr_entries);
	free(first);
	free(second);
	config_free(again);
	config_free(c);
}

static void round_trip(void **state)
{
	(void)state;
	check_round_trip(example, false);
	check_round_trip("listen :443 tcp\n", false);
}

/* A list file beside the text; the flat form does without it. */
static void flat_round_trip(void **state)
{
	char path[] = "/tmp/headgate-list-XXXXXX", text[1024];
	int fd = mkstemp(path);
	struct messages m = { 0 };
	struct config *c, *flat;
	char *printed;
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "192.0.2.0/24\n2001:db8::/32\n", 27), 27);
	close(fd);
	snprintf(text, sizeof(text), "%sblock file \"%s\"\n", example, path);
	check_round_trip(text, true);

	c = parse_good(text);
	assert_int_equal(c->block.nr_entries, 4);
	assert_true(c->block.entries[2].is_from_file);
	assert_string_equal(c->block.entries[3].at.file, path);
	assert_int_equal(c->block.entries[3].at.line, 2);
	unlink(path);
	printed = print(c, true, &len);
	assert_null(strstr(printed, "file"));
	flat = config_parse_flat("flat", printed, len, note, &m);
	assert_non_null(flat);
	assert_int_equal(flat->block.nr_entries, 4);
	free(printed);
	config_free(flat);

	/* the control: the other form needs the file */
	printed = print(c, false, &len);
	assert_non_null(strstr(printed, "file"));
	assert_null(config_parse("again", printed, len, note, &m));
	free(printed);
	config_free(c);
}

static void flat_opens_nothing(void **state)
{
	static const char *const texts[] = {
		"listen :443 tcp\ninclude \"/dev/null\"\n",
		"listen :443 tcp\nblock file \"/dev/null\"\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct messages m = { 0 };
		struct config *c;

		assert_null(config_parse_flat("flat", texts[i],
					      strlen(texts[i]), note, &m));
		assert_int_equal(m.nr_errors, 1);
		assert_non_null(strstr(m.first_error, "not allowed here"));
		c = parse(texts[i], &m);
		assert_non_null(c);
		config_free(c);
	}
}

/* Few errors that do not end the reading, and the first ones of many. */
static void several_errors(void **state)
{
	struct messages m;
	struct writer w;
	int i;

	(void)state;
	assert_null(parse("lisen :443 tcp\n"
			  "route a.org to nowhere\n"
			  "timeout idle 5\n",
			  &m));
	assert_int_equal(m.nr_errors, 3);
	assert_string_equal(m.first_error,
			    "test.conf:1:1: error: unknown statement 'lisen'; "
			    "did you mean 'listen'?");
	begin(&w);
	for (i = 0; i < MANY; i++)
		fprintf(w.out, "route h%d.org to nowhere\n", i);
	end(&w);
	assert_null(parse(w.text, &m));
	assert_int_equal(m.nr_errors, 21);
	assert_non_null(strstr(m.last, "20 errors"));
	free(w.text);
}

static void many_warnings(void **state)
{
	struct messages m;
	struct config *c;
	struct writer w;
	int i;

	(void)state;
	begin(&w);
	fputs("listen :443 tcp\ndefault drop\n", w.out);
	for (i = 0; i < 1000; i++)
		fprintf(w.out, "block 10.0.%d.%d\n", i / 256, i % 256);
	end(&w);
	c = parse(w.text, &m);
	assert_non_null(c);
	assert_int_equal(m.nr_warnings, 101);
	assert_non_null(strstr(m.last, "900 more warnings"));
	config_free(c);
	free(w.text);
}

/* Nobody listens to the messages. */
static void no_report(void **state)
{
	struct config *c;

	(void)state;
	assert_null(config_parse("x", "lisen\n", 6, NULL, NULL));
	c = config_parse("x", "listen :1 tcp", 13, NULL, NULL);
	assert_non_null(c);
	config_free(c);
	assert_null(config_load("/nonexistent/x.conf", NULL, NULL));
	config_free(NULL);
}

static void check_fast(const struct writer *w, double began, const char *what)
{
	struct messages m = { 0 };
	struct config *c, *flat;
	double parsed, printed;
	size_t len;
	char *text;

	c = config_parse(what, w->text, w->len, note, &m);
	parsed = now();
	if (!c)
		print_error("%s\n", m.first_error);
	assert_non_null(c);
	text = print(c, true, &len);
	printed = now();
	flat = config_parse_flat(what, text, len, NULL, NULL);
	assert_non_null(flat);
	print_message("%s: %.0f ms, printed in %.0f ms, flat in %.0f ms\n",
		      what, (parsed - began) * 1e3, (printed - parsed) * 1e3,
		      (now() - printed) * 1e3);
	assert_true(now() - began < SECONDS_MAX);
	config_free(flat);
	config_free(c);
	free(text);
}

static void many_routes(void **state)
{
	double began = now();
	struct writer w;
	int i;

	(void)state;
	begin(&w);
	fputs("listen :443 tcp\n", w.out);
	for (i = 0; i < MANY; i++)
		fprintf(w.out,
			"backend b%d 10.0.0.1:443\n"
			"route host%d.example.org, *.host%d.example.org to "
			"b%d\n",
			i, i, i, i);
	end(&w);
	check_fast(&w, began, "100,000 routes");
	free(w.text);
}

static void write_prefixes(FILE *out, const char *before)
{
	int i;

	for (i = 0; i < MANY; i++)
		fprintf(out, "%s10.%d.%d.%d\n", before, i >> 16, i >> 8 & 255,
			i & 255);
}

static void many_prefixes(void **state)
{
	double began = now();
	struct writer w;

	(void)state;
	begin(&w);
	fputs("listen :443 tcp\n", w.out);
	write_prefixes(w.out, "block ");
	end(&w);
	check_fast(&w, began, "100,000 prefixes");
	free(w.text);
}

static void many_prefixes_of_file(void **state)
{
	char path[] = "/tmp/headgate-list-XXXXXX";
	double began = now();
	FILE *list = fdopen(mkstemp(path), "w");
	struct writer w;

	(void)state;
	assert_non_null(list);
	write_prefixes(list, "");
	fclose(list);
	begin(&w);
	fprintf(w.out, "listen :443 tcp\nblock file \"%s\"\n", path);
	end(&w);
	check_fast(&w, began, "a file of 100,000 prefixes");
	unlink(path);
	free(w.text);
}

/* Every proper prefix of a text ends in a line that may be half said. */
static void cut_short(void **state)
{
	size_t len;

	(void)state;
	for (len = 0; len < strlen(example); len++)
		config_free(config_parse("cut", example, len, NULL, NULL));
}

static void find_backend(void **state)
{
	struct config *c = parse_good("listen :1 tcp\n"
				      "backend m 10.0.0.1:1\n"
				      "backend a 10.0.0.2:1\n"
				      "backend z 10.0.0.3:1\n"
				      "default to z\n");

	(void)state;
	assert_int_equal(config_find_backend(c, "m"), 0);
	assert_int_equal(config_find_backend(c, "a"), 1);
	assert_int_equal(config_find_backend(c, "z"), 2);
	assert_int_equal(config_find_backend(c, "b"), -1);
	assert_int_equal(config_find_backend(c, ""), -1);
	assert_int_equal(c->default_target.backend, 2);
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(defaults),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(flat_round_trip),
		cmocka_unit_test(flat_opens_nothing),
		cmocka_unit_test(several_errors),
		cmocka_unit_test(many_warnings),
		cmocka_unit_test(no_report),
		cmocka_unit_test(many_routes),
		cmocka_unit_test(many_prefixes),
		cmocka_unit_test(many_prefixes_of_file),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(find_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
