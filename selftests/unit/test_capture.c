// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "capture.h"
#include "captures.h"
#include "frame.h"

static struct file_writer file;
static struct capture capture;

static struct span text(const char *s)
{
	return span_of_text(s);
}

/* In a buffer of exactly this size, so that ASan sees any over-read. */
static enum capture_result next_of(struct span *rest, struct span *frame)
{
	struct capture_frame f = { 0 };
	enum capture_result result = capture_next(&capture, rest, &f);

	*frame = f.bytes;
	return result;
}

/*
 * Reads `nr` frames, "one", "two", …; the file comes in pieces of `step`
 * bytes, and each piece may be the last one.
 */
static void check_frames(size_t step, unsigned int nr)
{
	static const char *const expected[] = { "one", "two", "three", "four" };
	size_t done = 0, len = 0;
	unsigned int nr_read = 0;
	struct span frame;

	capture_init(&capture);
	while (len < file.out.len) {
		enum capture_result result;
		uint8_t *copy;
		struct span rest;

		len = len + step < file.out.len ? len + step : file.out.len;
		copy = malloc(len - done);
		assert_non_null(copy);
		memcpy(copy, file.out.data + done, len - done);
		rest = span_of(copy, len - done);
		while ((result = next_of(&rest, &frame)) == CAPTURE_FRAME)
			assert_true(
				span_equal(frame, text(expected[nr_read++])));
		assert_int_equal(result, CAPTURE_MORE);
		done = len - rest.len;
		free(copy);
	}
	assert_int_equal(done, file.out.len);
	assert_int_equal(nr_read, nr);
	assert_int_equal(capture.nr_frames, nr);
}

static void check_every_step(unsigned int nr)
{
	for (size_t step = 1; step < 64; step++)
		check_frames(step, nr);
	check_frames(SIZE_MAX / 2, nr);
}

static void pcap(void **state)
{
	static const size_t magics[] = { 0xa1b2c3d4, 0xa1b23c4d };

	(void)state;
	for (int i = 0; i < 4; i++) {
		file_begin(&file, i & 1);
		pcap_header(&file, magics[i >> 1], 0xf4000000 + 113);
		pcap_frame(&file, text("one"));
		pcap_frame(&file, text("two"));
		check_every_step(2);
		assert_int_equal(capture.format, CAPTURE_PCAP);
		assert_int_equal(capture.interfaces[0].link_type, 113);
	}
}

static void pcapng(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		file_begin(&file, i);
		pcapng_section(&file);
		pcapng_interface(&file, 1, 0);
		pcapng_interface(&file, 101, 0);
		pcapng_frame(&file, 6, 1, text("one"));
		block_end(&file, block_begin(&file, 0x0bad)); /* unknown */
		pcapng_frame(&file, 2, 0, text("two"));
		/* another section, of the other order */
		file.is_big_endian = !file.is_big_endian;
		pcapng_section(&file);
		pcapng_frame(&file, 6, 0, text("of no interface"));
		pcapng_interface(&file, 113, 5);
		pcapng_simple_frame(&file, 9, text("three"));
		pcapng_simple_frame(&file, 4, text("four"));
		check_every_step(4);
		assert_int_equal(capture.format, CAPTURE_PCAPNG);
		assert_int_equal(capture.nr_unassigned, 1);
		assert_int_equal(capture.nr_cut, 1);
	}
}

static void check_invalid(const void *bytes, size_t len, enum capture_format f)
{
	struct span rest = span_of(bytes, len), frame;

	capture_init(&capture);
	assert_int_equal(next_of(&rest, &frame), CAPTURE_INVALID);
	assert_int_equal(capture.format, f);
}

static void not_a_capture(void **state)
{
	(void)state;
	check_invalid("GET / HTTP/1.1", 14, CAPTURE_UNKNOWN);
	check_invalid("\0\0\0\0", 4, CAPTURE_UNKNOWN);
	check_invalid("\x1f\x8b\x08\0", 4, CAPTURE_UNKNOWN);
}

/* Writes `value` over four bytes at `at`; the first call must refuse it. */
static void check_damage(size_t at, size_t value)
{
	size_t len = file.out.len;

	file.out.len = at;
	file_number(&file, value, 4);
	file.out.len = len;
	check_invalid(file.out.data, len,
		      file.out.data[0] == 0x0a ? CAPTURE_PCAPNG : CAPTURE_PCAP);
}

static void damaged(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		file_begin(&file, i);
		pcap_header(&file, 0xa1b2c3d4, 1);
		pcap_frame(&file, text("one"));
		check_damage(24 + 8, CAPTURE_BLOCK_MAX + 1);
	}
	/* lengths of blocks: too short, odd, too long, not twice the same */
	for (size_t len = 0; len < 28; len++) {
		if (len == 12 || len == 16 || len == 20 || len == 24)
			continue;
		file_begin(&file, true);
		pcapng_section(&file);
		check_damage(4, len);
	}
	check_damage(4, CAPTURE_BLOCK_MAX + 4);
	file_begin(&file, false);
	pcapng_section(&file);
	check_damage(24, 32);
	file_begin(&file, false);
	pcapng_section(&file);
	check_damage(8, 0x1a2b3c4e);
	/* a frame that is longer than its block */
	file_begin(&file, false);
	pcapng_section(&file);
	pcapng_interface(&file, 1, 0);
	pcapng_frame(&file, 6, 0, text("four"));
	check_damage(28 + 20 + 20, 5);
}

/* A frame of this link type, in a buffer of exactly its size. */
static enum frame_result parse_frame(uint16_t link_type, struct span bytes,
				     struct segment *out)
{
	uint8_t *copy = malloc(bytes.len ? bytes.len : 1);
	struct capture_frame frame = {
		.link_type = link_type,
		.bytes = span_of(copy, bytes.len),
	};
	enum frame_result result;

	assert_non_null(copy);
	memcpy(copy, bytes.p, bytes.len);
	result = frame_parse(&frame, out);
	if (result == FRAME_TCP && out->payload.len) {
		assert_int_equal(out->payload.len, 5);
		assert_memory_equal(out->payload.p, "hello", 5);
	}
	free(copy);
	return result;
}

static const struct tcp hello_segment = {
	.from = 1,
	.from_port = 1234,
	.to = 2,
	.to_port = 443,
	.seq = 0xfffffffe,
	.ack = 77,
	.flags = PSH | ACK,
	.data = "hello",
	.len = 5,
};

static void check_segment(uint16_t link_type, const struct bytes *frame)
{
	struct segment s;
	char buf[ADDRESS_TEXT];

	assert_int_equal(parse_frame(link_type, bytes_span(frame), &s),
			 FRAME_TCP);
	assert_int_equal(s.seq, 0xfffffffe);
	assert_int_equal(s.ack, 77);
	assert_int_equal(s.flags, PSH | ACK);
	assert_int_equal(s.payload.len, 5);
	address_format(&s.source, buf, sizeof(buf));
	if (s.source.family == AF_INET)
		assert_string_equal(buf, "192.0.2.1:1234");
	else
		assert_string_equal(buf, "[2001:db8::1]:1234");
	address_format(&s.destination, buf, sizeof(buf));
	if (s.source.family == AF_INET)
		assert_string_equal(buf, "192.0.2.2:443");
	else
		assert_string_equal(buf, "[2001:db8::2]:443");
}

static void link_types(void **state)
{
	static const struct {
		uint16_t link_type;
		const char *header;
		size_t len;
		bool is_v6;
	} cases[] = {
		{ 0, "\2\0\0\0", 4, false },
		{ 0, "\x1e\0\0\0", 4, true },
		{ 108, "\0\0\0\2", 4, false },
		{ 101, "", 0, false },
		{ 101, "", 0, true },
		{ 12, "", 0, false },
		{ 228, "", 0, false },
		{ 229, "", 0, true },
		{ 1, "ddddddssssss\x08\0", 14, false },
		{ 1, "ddddddssssss\x86\xdd", 14, true },
		{ 1, "ddddddssssss\x81\0\0\7\x08\0", 18, false },
		{ 1, "ddddddssssss\x88\xa8\0\7\x81\0\0\7\x08\0", 22, false },
		{ 1, "ddddddssssss\x88\x64\x11\0\0\7\0\x39\0\x21", 22, false },
		{ 113, "\0\0\0\1\0\6ssssss\0\0\x08\0", 16, false },
		{ 113, "\0\0\0\1\0\6ssssss\0\0\x81\0\0\7\x86\xdd", 20, true },
		{ 276, "\x86\xdd\0\0\0\0\0\1\0\1\0\6ssssss\0\0", 20, true },
	};
	static struct bytes frame;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		frame.len = 0;
		bytes_add(&frame, cases[i].header, cases[i].len);
		if (cases[i].is_v6)
			ipv6_packet(&frame, &hello_segment, 6, text(""));
		else
			ipv4_packet(&frame, &hello_segment);
		check_segment(cases[i].link_type, &frame);
		/* what the link pads with is no payload */
		bytes_add(&frame, "padding", 7);
		check_segment(cases[i].link_type, &frame);
	}
}

static void every_cut_of_a_frame(void **state)
{
	static struct bytes frame;
	struct segment s;
	enum frame_result result;

	(void)state;
	bytes_add(&frame, "ddddddssssss\x81\0\0\7\x08\0", 18);
	ipv4_packet(&frame, &hello_segment);
	for (size_t len = 0; len <= frame.len; len++) {
		result = parse_frame(1, span_of(frame.data, len), &s);
		if (len < 18)
			assert_int_equal(result, FRAME_OTHER);
		else if (len < 18 + 20 + 32)
			assert_int_equal(result, FRAME_DAMAGED);
		else if (len == 18 + 20 + 32 || len == frame.len)
			assert_int_equal(result, FRAME_TCP);
		/* a cut payload fails the comparison in parse_frame() */
		if (len == 18 + 20 + 32)
			len = frame.len - 1;
	}
}

static void ipv4_variants(void **state)
{
	struct tcp t = hello_segment;
	static struct bytes frame;
	struct segment s;

	(void)state;
	t.options_len = 40;
	ipv4_packet(&frame, &t);
	check_segment(101, &frame);
	frame.data[2] = frame.data[3] = 0; /* a length to be filled in */
	check_segment(101, &frame);
	for (unsigned int bit = 0; bit < 16; bit++) {
		t.fragment = 1u << bit;
		frame.len = 0;
		ipv4_packet(&frame, &t);
		assert_int_equal(parse_frame(101, bytes_span(&frame), &s),
				 bit < 14 ? FRAME_FRAGMENT : FRAME_TCP);
	}
	frame.data[9] = 17;
	assert_int_equal(parse_frame(101, bytes_span(&frame), &s), FRAME_OTHER);
	frame.data[0] = 0x44;
	assert_int_equal(parse_frame(101, bytes_span(&frame), &s),
			 FRAME_DAMAGED);
}

static void ipv6_variants(void **state)
{
	static const struct {
		unsigned int type;
		const char *chain;
		size_t len;
		enum frame_result expected;
	} cases[] = {
		{ 0, "\x3c\0pppppp\x06\1pppppppppppppp", 24, FRAME_TCP },
		{ 43, "\x06\0pppppp", 8, FRAME_TCP },
		{ 51, "\x06\1pppppppppp", 12, FRAME_TCP },
		{ 44, "\x06\0\0\0pppp", 8, FRAME_TCP },
		{ 44, "\x06\0\0\1pppp", 8, FRAME_FRAGMENT },
		{ 44, "\x06\0\0\x08pppp", 8, FRAME_FRAGMENT },
		{ 50, "pppppppp", 8, FRAME_OTHER },
		{ 0, "\x06\xffpppppp", 8, FRAME_DAMAGED },
	};
	static struct bytes frame;
	struct segment s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		frame.len = 0;
		ipv6_packet(&frame, &hello_segment, cases[i].type,
			    span_of(cases[i].chain, cases[i].len));
		if (cases[i].expected == FRAME_TCP)
			check_segment(101, &frame);
		assert_int_equal(parse_frame(101, bytes_span(&frame), &s),
				 cases[i].expected);
	}
}

static void lying_data_offset(void **state)
{
	static struct bytes frame;
	struct segment s;

	(void)state;
	ipv4_packet(&frame, &hello_segment);
	for (unsigned int offset = 0; offset < 16; offset++) {
		frame.data[20 + 12] = (uint8_t)(offset << 4);
		if (offset == 8 || offset < 5 || offset > 9)
			assert_int_equal(
				parse_frame(101, bytes_span(&frame), &s),
				offset == 8 ? FRAME_TCP : FRAME_DAMAGED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pcap),
		cmocka_unit_test(pcapng),
		cmocka_unit_test(not_a_capture),
		cmocka_unit_test(damaged),
		cmocka_unit_test(link_types),
		cmocka_unit_test(every_cut_of_a_frame),
		cmocka_unit_test(ipv4_variants),
		cmocka_unit_test(ipv6_variants),
		cmocka_unit_test(lying_data_offset),
	};

	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
