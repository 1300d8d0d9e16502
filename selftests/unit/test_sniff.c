// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command itself, as it was built next to this test: files in, lines and
 * an exit status out.
 */
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "captures.h"

enum { OK = 0, FAILED = 1, USAGE = 2 };

static struct file_writer file;
static struct hello hello;
static struct bytes wire;

static char headgate[PATH_MAX];
static char in_path[] = "/tmp/headgate-sniff-XXXXXX";
static char output[65536];

static int make_file(void **state)
{
	int fd = mkstemp(in_path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(in_path);
}

static void find_command(void)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(len > 0);
	self[len] = '\0';
	snprintf(headgate, sizeof(headgate), "%s/../headgate", dirname(self));
	if (!access(headgate, X_OK))
		return;
	print_message("SKIPPED: no %s\n", headgate);
	skip();
}

/* Runs it on `file`; what it prints is in `output`, errors are not. */
static int run(const char *option)
{
	char command[2 * PATH_MAX];
	FILE *pipe = fopen(in_path, "w");
	int status;

	find_command();
	assert_non_null(pipe);
	fwrite(file.out.data, 1, file.out.len, pipe);
	assert_int_equal(fclose(pipe), 0);
	snprintf(command, sizeof(command), "'%s' sniff %s %s 2>/dev/null",
		 headgate, option, in_path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void begin_file(void)
{
	file_begin(&file, false);
	pcap_header(&file, 0xa1b2c3d4, 101);
}

static void add_connection(unsigned int port, struct span data, bool is_v6)
{
	const struct tcp t = {
		.from = 1,
		.from_port = port,
		.to = 2,
		.to_port = 443,
		.flags = SYN,
		.data = data.p,
		.len = data.len,
	};
	static struct bytes packet;

	packet.len = 0;
	if (is_v6)
		ipv6_packet(&packet, &t, 6, span_of("", 0));
	else
		ipv4_packet(&packet, &t);
	pcap_frame(&file, bytes_span(&packet));
}

/* A name, and protocols of hostile bytes. */
static void add_hello(unsigned int port, const char *alpn, size_t len)
{
	hello_begin(&hello);
	hello_server_name(&hello, "WWW.example.org", 15);
	hello_alpn(&hello, alpn, len);
	hello_end(&hello);
	records_write(&wire, bytes_span(&hello.message), 16384);
	add_connection(port, bytes_span(&wire), false);
}

static void json_lines(void **state)
{
	static const char hostile[] = "\x02h2\x06\0\xff\x80\x1b\"\\";

	(void)state;
	begin_file();
	add_hello(1000, hostile, sizeof(hostile) - 1);
	add_connection(1001, span_of_text("GET / HTTP/1.1"), true);
	add_connection(1002, span_of("", 0), false);
	assert_int_equal(run("--json"), OK);
	assert_string_equal(
		output,
		"{\"transport\":\"tcp\",\"src\":\"192.0.2.1:1000\","
		"\"dst\":\"192.0.2.2:443\",\"sni\":\"www.example.org\","
		"\"alpn\":[\"h2\",\"\\u0000\\u00FF\\u0080\\u001B\\\"\\\\\"],"
		"\"result\":\"name\",\"reason\":null}\n"
		"{\"transport\":\"tcp\",\"src\":\"[2001:db8::1]:1001\","
		"\"dst\":\"[2001:db8::2]:443\",\"sni\":null,\"alpn\":[],"
		"\"result\":\"not-tls\",\"reason\":\"not_tls\"}\n"
		"{\"transport\":\"tcp\",\"src\":\"192.0.2.1:1002\","
		"\"dst\":\"192.0.2.2:443\",\"sni\":null,\"alpn\":[],"
		"\"result\":\"need-more\",\"reason\":null}\n");
}

static void text_lines(void **state)
{
	static const char hostile[] = "\x02h2\x06\0\xff, \x1b\\";

	(void)state;
	begin_file();
	add_hello(1000, hostile, sizeof(hostile) - 1);
	add_connection(1001, span_of("\x16\3\1\0\0", 5), false);
	assert_int_equal(run("--"), OK);
	assert_string_equal(
		output,
		"192.0.2.1:1000 -> 192.0.2.2:443  name www.example.org  "
		"alpn h2,\\x00\\xff\\x2c\\x20\\x1b\\x5c\n"
		"192.0.2.1:1001 -> 192.0.2.2:443  malformed "
		"(tls_record: a TLS record is malformed)\n");
}

/* What could be read is printed, wherever the file is cut. */
static void every_cut_of_a_file(void **state)
{
	size_t first, whole;

	(void)state;
	begin_file();
	add_hello(1000, "\2h2", 3);
	first = file.out.len;
	add_connection(1001, span_of_text("GET /"), false);
	whole = file.out.len;
	for (size_t len = 0; len <= whole; len += len < 40 ? 1 : 7) {
		file.out.len = len;
		if (len == first || len == whole || len == 24)
			assert_int_equal(run("--json"), OK);
		else
			assert_int_equal(run("--json"),
					 len < 24 ? USAGE : FAILED);
		assert_int_equal(strstr(output, "www.example.org") != NULL,
				 len >= first);
	}
	file.out.len = whole;
	assert_int_equal(run("--json"), OK);
}

static void not_a_capture(void **state)
{
	(void)state;
	file_begin(&file, false);
	bytes_add(&file.out, "GET / HTTP/1.1\r\n", 16);
	assert_int_equal(run("--json"), USAGE);
	file_begin(&file, false);
	bytes_add(&file.out, "\x1f\x8b\x08\0", 4);
	assert_int_equal(run("--json"), USAGE);
	assert_int_equal(run("--nonsense"), USAGE);
	assert_string_equal(output, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_lines),
		cmocka_unit_test(text_lines),
		cmocka_unit_test(every_cut_of_a_file),
		cmocka_unit_test(not_a_capture),
	};

	return cmocka_run_group_tests_name("sniff", tests, make_file,
					   remove_file);
}
