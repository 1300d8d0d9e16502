// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a byte of a ClientHello costs: in everyday hellos, and in those that
 * have as much as they can hold of everything that the parser walks over. The
 * dearest may cost five times the median of the everyday ones; else exit 1.
 */
#include <stdio.h>
#include <time.h>

#include "../unit/hellos.h"
#include "tls.h"

#define RATIO_MAX 5.0
#define NR_RUNS	  25
#define RUN_NS	  200000

static struct hello hello;
static struct bytes wire;
static struct tls_scratch scratch;

static const uint8_t zeros[TLS_HELLO_MAX];

/* Builders get the size that the message should have, about. */

static void pad(size_t size)
{
	if (size > hello.message.len + 4)
		hello_extension(&hello, 21, zeros,
				size - hello.message.len - 4);
}

static void everyday(size_t size)
{
	static const uint8_t versions[] = { 4, 3, 4, 3, 3 };
	/* the types of today's clients; those of 5 and up of browsers alone */
	static const size_t empty[] = { 23, 22, 35, 49, 5, 18, 17513, 2570 };
	size_t nr_empty = size < 300 ? 4 : 8;

	hello_begin(&hello);
	hello_server_name(&hello, "www.example.org", 15);
	for (size_t i = 0; i < nr_empty; i++)
		hello_extension(&hello, empty[i], NULL, 0);
	hello_extension(&hello, 10, zeros, 10);
	hello_extension(&hello, 11, zeros, 2);
	hello_extension(&hello, 13, zeros, 18);
	if (size >= 200) {
		hello_alpn(&hello, "\2h2\10http/1.1", 12);
		hello_extension(&hello, 43, versions, sizeof(versions));
		hello_extension(&hello, 45, zeros, 2);
		hello_extension(&hello, 51, zeros, size > 1500 ? 1258 : 38);
	}
	if (size > 500)
		hello_extension(&hello, 65037, zeros, 186);
	pad(size);
	hello_end(&hello);
}

static void long_name(size_t size)
{
	char name[TLS_NAME_MAX];

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'A';
	hello_begin(&hello);
	hello_server_name(&hello, name, sizeof(name));
	pad(size);
	hello_end(&hello);
}

static void numbers_as_name(size_t size)
{
	char name[TLS_NAME_MAX];

	memset(name, '1', sizeof(name));
	name[60] = name[120] = name[180] = name[240] = '.';
	hello_begin(&hello);
	hello_server_name(&hello, name, sizeof(name));
	pad(size);
	hello_end(&hello);
}

/* As many extensions as fit, `data_len` bytes each, types a stride apart. */
static void many_extensions(size_t size, size_t stride, size_t data_len)
{
	hello_begin(&hello);
	hello_server_name(&hello, "a.example", 9);
	for (size_t type = 1; hello.message.len + 4 + data_len <= size; type++)
		hello_extension(&hello, (100 + type * stride) % 65536, zeros,
				data_len);
	hello_end(&hello);
}

static void empty_extensions(size_t size)
{
	many_extensions(size, 1, 0);
}

static void empty_extensions_apart(size_t size)
{
	many_extensions(size, 64 * 23 + 1, 0);
}

static void tiny_extensions(size_t size)
{
	many_extensions(size, 65, 1);
}

static void alpn_of(size_t size, size_t name_len)
{
	static uint8_t list[TLS_HELLO_MAX];
	size_t len = 0;

	while (len + 1 + name_len < size - 100) {
		list[len] = (uint8_t)name_len;
		memset(list + len + 1, 'x', name_len);
		len += 1 + name_len;
	}
	hello_begin(&hello);
	hello_alpn(&hello, list, len);
	hello_end(&hello);
}

static void alpn_of_single_bytes(size_t size)
{
	alpn_of(size, 1);
}

static void alpn_of_words(size_t size)
{
	alpn_of(size, 8);
}

/* 255 other types, the name last; what is left of the size is one of them. */
static void server_name_list(size_t size)
{
	static uint8_t data[2 * TLS_HELLO_MAX];
	struct bytes *list = calloc(1, sizeof(*list));
	size_t start;

	if (!list)
		abort();
	start = bytes_open(list, 2);
	for (size_t type = 1; type < 256 && list->len + 130 < size; type++)
		bytes_number(list, type << 16, 3);
	bytes_add(list, "\0\0\1a", 4);
	bytes_close(list, start, 2);
	memcpy(data, list->data, list->len);
	hello_begin(&hello);
	hello_extension(&hello, 0, data, list->len);
	pad(size);
	hello_end(&hello);
	free(list);
}

static const struct kind {
	const char *name;
	void (*build)(size_t size);
	size_t record_len; /* 0: half of the hello */
	enum { CUT = 1, SPOILT = 2 } flags;
} kinds[] = {
	{ "everyday", everyday, 16384, 0 },
	{ "everyday, cut by a byte", everyday, 16384, CUT },
	{ "everyday, a byte too long", everyday, 16384, SPOILT },
	{ "everyday, records of 100", everyday, 100, 0 },
	{ "everyday, records of 4", everyday, 4, 0 },
	{ "everyday, records of 1", everyday, 1, 0 },
	{ "the same, cut by a byte", everyday, 1, CUT },
	{ "253 bytes of name", long_name, 16384, 0 },
	{ "253 digits of name", numbers_as_name, 16384, 0 },
	{ "empty extensions", empty_extensions, 16384, 0 },
	{ "the same, types apart", empty_extensions_apart, 16384, 0 },
	{ "the same, records of 1", empty_extensions_apart, 1, 0 },
	{ "the same, spoilt", empty_extensions_apart, 16384, SPOILT },
	{ "extensions of a byte", tiny_extensions, 16384, 0 },
	{ "ALPN names of a byte", alpn_of_single_bytes, 16384, 0 },
	{ "ALPN names of 8 bytes", alpn_of_words, 16384, 0 },
	{ "server names of all types", server_name_list, 16384, 0 },
};

static const size_t sizes[] = { 300, 517, 1800, 8000, 32000 };

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double run_ns(struct span bytes, unsigned int nr)
{
	struct tls_hello out;
	uint64_t start = now_ns();

	for (unsigned int i = 0; i < nr; i++) {
		tls_parse_records(bytes, &scratch, &out);
		__asm__ volatile("" : : "r"(&out) : "memory");
	}
	return (double)(now_ns() - start) / nr;
}

/* The least of many runs: what disturbs a run only ever adds to it. */
static double least_ns(struct span bytes)
{
	double once = run_ns(bytes, 10), least = once;
	unsigned int nr = (unsigned int)(RUN_NS / (once + 1)) + 1;

	for (unsigned int i = 0; i < NR_RUNS; i++) {
		double ns = run_ns(bytes, nr);

		if (ns < least)
			least = ns;
	}
	return least;
}

static double measure(const struct kind *k, size_t size)
{
	struct span bytes;
	size_t len;

	k->build(size);
	if (k->flags & SPOILT)
		hello.message.data[hello.extensions_at - 1]++;
	len = hello.message.len;
	records_write(&wire, bytes_span(&hello.message),
		      k->record_len ? k->record_len : len / 2 + 1);
	bytes = bytes_span(&wire);
	if (k->flags & CUT)
		bytes.len--;
	return least_ns(bytes) / (double)bytes.len;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The first kind, at the sizes that clients send: 200 to 2,000 bytes. */
static double measure_everyday(void)
{
	static const size_t usual[] = { 180, 220, 260, 320, 517, 700, 1800 };
	double ns[7];

	for (size_t i = 0; i < 7; i++) {
		ns[i] = measure(&kinds[0], usual[i]);
		printf("everyday hello of %4zu bytes: %.3f ns per byte\n",
		       usual[i], ns[i]);
	}
	qsort(ns, 7, sizeof(ns[0]), compare);
	return ns[3];
}

static double measure_all(void)
{
	double worst = 0;

	printf("%-28s", "\nns per byte; bytes:");
	for (size_t s = 0; s < NR_SIZES; s++)
		printf("%9zu", sizes[s]);
	for (size_t k = 0; k < NR_KINDS; k++) {
		printf("\n%-27s", kinds[k].name);
		for (size_t s = 0; s < NR_SIZES; s++) {
			double ns = measure(&kinds[k], sizes[s]);

			printf("%9.3f", ns);
			worst = ns > worst ? ns : worst;
		}
	}
	return worst;
}

int main(void)
{
	double median = measure_everyday(), worst = measure_all();

	printf("\n\nmedian of everyday hellos %.3f, worst of all %.3f: "
	       "%.2f times (may be %.0f)\n",
	       median, worst, worst / median, RATIO_MAX);
	return worst / median > RATIO_MAX;
}
