// SPDX-License-Identifier: GPL-2.0-or-later
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "config/suggest.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv, const struct command_options *o);
	const char *arguments, *help;
} commands[] = {
	{ "check", command_check,
	  "[-c FILE] [--print] [--route NAME [--alpn A]... [--quic]] [--json]",
	  "validate a configuration, or ask it which route wins" },
	{ "sniff", command_sniff, "[--json] FILE.pcap|-",
	  "print the name and ALPN of every connection of a capture" },
	{ "status", command_status, "[--json]",
	  "what the daemon is doing: listeners, backends, connections" },
	{ "reload", command_reload, "[--json]",
	  "make the daemon read its configuration again" },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
	size_t i;

	fprintf(out, "usage: headgate [--run-dir DIR] [--pin-dir DIR] "
		     "COMMAND ...\n\n");
	for (i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  %s %s\n      %s\n", commands[i].name,
			commands[i].arguments, commands[i].help);
	fprintf(out, "\n  --run-dir DIR  where the daemon's control socket is "
		     "(/run/headgate)\n"
		     "  --pin-dir DIR  where its BPF objects are pinned "
		     "(/sys/fs/bpf/headgate)\n"
		     "  --version      print the version\n"
		     "  --help         print this\n");
}

/* Returns the exit status, or -1 to go on; optind is then the command. */
static int parse_options(int argc, char **argv, struct command_options *o)
{
	static const struct option options[] = {
		{ "run-dir", required_argument, NULL, 'r' },
		{ "pin-dir", required_argument, NULL, 'p' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	/* "+": options behind the command's name are the command's */
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			o->run_dir = optarg;
			break;
		case 'p':
			o->pin_dir = optarg;
			break;
		case 'V':
			printf("headgate %s\n", HEADGATE_VERSION);
			return COMMAND_OK;
		case 'h':
			usage(stdout);
			return COMMAND_OK;
		default:
			return COMMAND_USAGE;
		}
	}
	return -1;
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static int complain_unknown(const char *name)
{
	struct config_suggestion near = { .word = name };
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++)
		config_suggest(&near, commands[i].name);
	fprintf(stderr, "headgate: unknown command '%s'; ", name);
	if (near.best)
		fprintf(stderr, "did you mean '%s'?\n", near.best);
	else
		fprintf(stderr, "see --help\n");
	return COMMAND_USAGE;
}

int main(int argc, char **argv)
{
	struct command_options o = {
		.run_dir = "/run/headgate",
		.pin_dir = "/sys/fs/bpf/headgate",
	};
	const struct command *command;
	int first, status = parse_options(argc, argv, &o);

	if (status >= 0)
		return status;
	if (optind == argc) {
		usage(stderr);
		return COMMAND_USAGE;
	}
	first = optind;
	command = find_command(argv[first]);
	if (!command)
		return complain_unknown(argv[first]);
	optind = 0; /* getopt_long() starts anew */
	return command->run(argc - first, argv + first, &o);
}
