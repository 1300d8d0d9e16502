// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First flights of other people's clients, with what other people's programs
 * read in them (corpora/README.md, "Use in a test").
 */
#include <ctype.h>
#include <jansson.h>
#include <unistd.h>

#include "tls_checks.h"

#define NR_SPLITS 1000

static const char *corpora_dir(void)
{
	const char *dir = getenv("HEADGATE_CORPORA");

	return dir ? dir : "../shared/corpora";
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void add_hex(struct bytes *out, const char *hex)
{
	for (; hex[0] && hex[1]; hex += 2) {
		const char digits[3] = { hex[0], hex[1] };

		bytes_number(out, strtoul(digits, NULL, 16), 1);
	}
	assert_int_equal(*hex, 0);
}

/* The corpora's strings are Latin-1 in UTF-8; bytes are compared. */
static void add_latin1(struct bytes *out, const json_t *string)
{
	const uint8_t *p = (const uint8_t *)json_string_value(string);
	size_t len = json_string_length(string);

	for (size_t i = 0; i < len; i++) {
		unsigned int c = p[i];

		if (c >= 0x80 && i + 1 < len)
			c = (c & 3) << 6 | (p[++i] & 0x3f);
		bytes_number(out, c, 1);
	}
}

/* Lower case and no final dot, on both sides. */
static void add_name(struct bytes *out, const json_t *string)
{
	add_latin1(out, string);
	for (size_t i = 0; i < out->len; i++)
		out->data[i] = (uint8_t)tolower(out->data[i]);
	if (out->len && out->data[out->len - 1] == '.')
		out->len--;
}

static bool name_is(const struct tls_hello *h, const json_t *string)
{
	static struct bytes name;

	name.len = 0;
	if (json_is_null(string))
		return !h->name_len;
	add_name(&name, string);
	return span_equal(bytes_span(&name), span_of(h->name, h->name_len));
}

static void add_protocol(struct bytes *list, const json_t *string)
{
	size_t start = bytes_open(list, 1);

	add_latin1(list, string);
	bytes_close(list, start, 1);
}

static bool alpn_is(const struct tls_hello *h, const json_t *array)
{
	static struct bytes list;
	const json_t *string;
	size_t i;

	list.len = 0;
	json_array_foreach(array, i, string) add_protocol(&list, string);
	return span_equal(bytes_span(&list), h->alpn);
}

/* Among the first `nr` of the hello's protocols. */
static bool alpn_has(const struct tls_hello *h, const json_t *string, size_t nr)
{
	static struct bytes wanted;
	struct span list = h->alpn, name;

	wanted.len = 0;
	add_latin1(&wanted, string);
	while (nr-- && tls_next_alpn(&list, &name))
		if (span_equal(name, bytes_span(&wanted)))
			return true;
	return false;
}

static bool alpn_has_all(const struct tls_hello *h, const json_t *wanted)
{
	const json_t *string;
	size_t i;

	if (json_is_string(wanted))
		return alpn_has(h, wanted, SIZE_MAX);
	json_array_foreach(
		wanted, i,
		string) if (!alpn_has(h, string, SIZE_MAX)) return false;
	return true;
}

/* The corpora do not tell apart what is not TLS and what is bad TLS. */
static const char *corpora_result(enum tls_result r)
{
	return r == TLS_NOT_TLS || r == TLS_MALFORMED ? "invalid"
						      : tls_result_names[r];
}

static bool is_accepted(const json_t *test, const char *result)
{
	const json_t *string;
	size_t i;

	json_array_foreach(json_object_get(test, "accept"), i,
			   string) if (!strcmp(json_string_value(string),
					       result)) return true;
	return false;
}

static void check_fields(const char *id, const json_t *expect,
			 const struct tls_hello *h)
{
	const json_t *v;

	v = json_object_get(expect, "sni");
	if (v && !name_is(h, v))
		fail_msg("%s: the name is '%s'", id, h->name);
	v = json_object_get(expect, "alpn");
	if (v && !alpn_is(h, v))
		fail_msg("%s: another ALPN list", id);
	v = json_object_get(expect, "alpn_first");
	if (v && !alpn_has(h, v, 1))
		fail_msg("%s: another first ALPN", id);
	v = json_object_get(expect, "alpn_has");
	if (v && !alpn_has_all(h, v))
		fail_msg("%s: an ALPN is missing", id);
}

static void check_stated(const char *id, const json_t *test,
			 enum tls_result result, const struct tls_hello *h)
{
	const json_t *expect = json_object_get(test, "expect"), *never;
	const char *expected = text_of(expect, "result");
	const char *got = corpora_result(result);
	size_t i;

	json_array_foreach(json_object_get(test, "never"), i,
			   never) if (name_is(h, never))
		fail_msg("%s: '%s' must not come out", id, h->name);
	if (is_accepted(test, got) && (!expected || strcmp(got, expected)))
		return;
	if (expected && strcmp(got, expected))
		fail_msg("%s: %s, not %s", id, got, expected);
	check_fields(id, expect, h);
}

/* Another independent reader, no authority: worth a look, not a failure. */
static unsigned int differs(const char *id, const json_t *test, const char *who,
			    const struct tls_hello *h)
{
	const json_t *said = json_object_get(test, who);
	const json_t *sni = json_object_get(said, "sni");
	const json_t *alpn = json_object_get(said, "alpn");

	if ((!sni || name_is(h, sni)) && (!alpn || alpn_is(h, alpn)))
		return 0;
	if (getenv("HEADGATE_VERBOSE"))
		print_message("%s: %s reads it differently\n", id, who);
	return 1;
}

struct tally {
	unsigned int nr_cases, nr_names, nr_hellos, nr_differ;
};

/* As it arrived; the answer that counts is the first that is final. */
static enum tls_result feed_segments(const json_t *segments, struct bytes *wire,
				     struct tls_hello *h)
{
	enum tls_result result = TLS_NEED_MORE;
	const json_t *segment;
	size_t i;

	wire->len = 0;
	json_array_foreach(segments, i, segment)
	{
		add_hex(wire, json_string_value(segment));
		if (result == TLS_NEED_MORE)
			result = tls_parse_records(bytes_span(wire),
						   &checks_scratch, h);
	}
	return result;
}

static void run_case(const json_t *test, struct tally *t, bool is_captured)
{
	const json_t *segments = json_object_get(test, "segments");
	const char *id = text_of(test, "id");
	static struct bytes wire;
	enum tls_result result;
	struct tls_hello h;
	size_t decided;

	if (!segments)
		return;
	result = feed_segments(segments, &wire, &h);
	t->nr_cases++;
	check_stated(id, test, result, &h);
	if (result <= TLS_NO_NAME)
		t->nr_differ += differs(id, test, "tshark", &h) ||
				differs(id, test, "ours", &h);
	decided = check_prefixes(id, bytes_span(&wire));
	check_splits(id, bytes_span(&wire), NR_SPLITS);
	if (result > TLS_NO_NAME)
		return;
	t->nr_hellos++;
	t->nr_names += result == TLS_NAME;
	if (is_captured && decided != wire.len)
		fail_msg("%s: decided at %zu of %zu", id, decided, wire.len);
	check_records(id, bytes_span(&wire), 100);
}

static struct tally run_file(const char *name, bool is_captured)
{
	struct tally t = { 0 };
	size_t size = 0;
	char path[4096], *line = NULL;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", corpora_dir(), name);
	in = fopen(path, "r");
	if (!in) {
		print_message("SKIPPED: no %s\n", path);
		skip();
	}
	while (getline(&line, &size, in) > 0) {
		json_t *test = json_loads(line, JSON_ALLOW_NUL, NULL);

		assert_non_null(test);
		run_case(test, &t, is_captured);
		json_decref(test);
	}
	free(line);
	fclose(in);
	print_message("%s: %u cases: %u hellos, %u with a name; others differ "
		      "about %u\n",
		      name, t.nr_cases, t.nr_hellos, t.nr_names, t.nr_differ);
	return t;
}

static void captured(void **state)
{
	struct tally t = run_file("tls.jsonl", true);

	(void)state;
	assert_true(t.nr_cases >= 200 && t.nr_names >= 51);
}

static void synthetic(void **state)
{
	struct tally t = run_file("synthetic.jsonl", false);

	(void)state;
	assert_true(t.nr_cases >= 150 && t.nr_names >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured),
		cmocka_unit_test(synthetic),
	};

	return cmocka_run_group_tests_name("corpora: tls", tests, NULL, NULL);
}
