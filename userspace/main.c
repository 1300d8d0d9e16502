// SPDX-License-Identifier: GPL-2.0-or-later
#include <getopt.h>
#include <stdio.h>

#include "supervisor.h"

static void usage(FILE *out)
{
	fputs("usage: headgated [-c FILE] [--run-dir DIR] [--pin-dir DIR] "
	      "[-t]\n"
	      "\n"
	      "Runs in the foreground and logs to stderr. SIGHUP reloads, "
	      "SIGTERM drains.\n"
	      "\n"
	      "  -c FILE        the configuration "
	      "(/etc/headgate/headgate.conf)\n"
	      "  --run-dir DIR  its control socket and lock (/run/headgate)\n"
	      "  --pin-dir DIR  its BPF objects (/sys/fs/bpf/headgate)\n"
	      "  -t             check the configuration, and exit\n"
	      "  --version      print the version, and exit\n"
	      "  --help         print this, and exit\n",
	      out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "pin-dir", required_argument, NULL, 'p' },
		{ "test", no_argument, NULL, 't' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct supervisor_options o = {
		.config_path = "/etc/headgate/headgate.conf",
		.run_dir = "/run/headgate",
		.pin_dir = "/sys/fs/bpf/headgate",
	};
	int opt, is_test = 0;

	while ((opt = getopt_long(argc, argv, "c:th", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			o.config_path = optarg;
			break;
		case 'r':
			o.run_dir = optarg;
			break;
		case 'p':
			o.pin_dir = optarg;
			break;
		case 't':
			is_test = 1;
			break;
		case 'V':
			printf("headgated %s\n", HEADGATE_VERSION);
			return SUPERVISOR_OK;
		case 'h':
			usage(stdout);
			return SUPERVISOR_OK;
		default:
			usage(stderr);
			return SUPERVISOR_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "headgated: unexpected '%s'\n", argv[optind]);
		return SUPERVISOR_USAGE;
	}
	return is_test ? supervisor_check(&o) : supervisor_run(&o);
}
