// SPDX-License-Identifier: GPL-2.0-or-later
#include "control_client.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int open_socket(const char *path, unsigned int patience_s)
{
	const struct timeval patience = { .tv_sec = patience_s };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&sun, sizeof(sun)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int write_line(int fd, const char *command)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s\n", command);

	if (send(fd, line, (size_t)len, MSG_NOSIGNAL) == len)
		return 0;
	return errno ? -errno : -EIO;
}

/* All that comes until the other side closes. */
static int read_all(int fd, json_t **answer)
{
	char *text = NULL;
	size_t size = 0;
	char buf[16384];
	FILE *f = open_memstream(&text, &size);
	ssize_t n;
	int err = 0;

	if (!f)
		return -ENOMEM;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, (size_t)n, f);
	if (n < 0)
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (fclose(f) && !err)
		err = -ENOMEM;
	if (!err && !size)
		err = -ECONNRESET;
	if (!err) {
		*answer = json_loadb(text, size, 0, NULL);
		err = *answer ? 0 : -EPROTO;
	}
	free(text);
	return err;
}

static const char *advice(int err)
{
	switch (err) {
	case -EACCES:
		return "it answers root and its own group";
	case -EPIPE:
	case -ECONNRESET:
		return "it refused this user, or has just ended";
	default:
		return "is it running?";
	}
}

int control_client_ask(const char *run_dir, const char *command,
		       unsigned int patience_s, json_t **answer)
{
	char path[4096];
	int fd, err;

	snprintf(path, sizeof(path), "%s/control.sock", run_dir);
	fd = open_socket(path, patience_s);
	err = fd < 0 ? fd : write_line(fd, command);
	if (!err)
		err = read_all(fd, answer);
	if (fd >= 0)
		close(fd);
	if (!err)
		return COMMAND_OK;
	fprintf(stderr, "headgate: headgated does not answer on %s: %s; %s\n",
		path, strerror(-err), advice(err));
	return COMMAND_UNREACHABLE;
}

int control_client_options(int argc, char **argv, const char *help,
			   bool *is_json)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	*is_json = false;
	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			*is_json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return COMMAND_OK;
		default:
			return COMMAND_USAGE;
		}
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "headgate: %s: unexpected '%s'\n", argv[0],
		argv[optind]);
	return COMMAND_USAGE;
}

int control_client_print(const json_t *answer)
{
	if (json_dumpf(answer, stdout, JSON_INDENT(2)) || putchar('\n') == EOF)
		return COMMAND_FAILED;
	return COMMAND_OK;
}
