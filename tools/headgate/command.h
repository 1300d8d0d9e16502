/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands of `headgate`, one file each. A command gets its own name as
 * argv[0], parses its options with getopt_long(), and returns an exit status.
 */
#ifndef HEADGATE_COMMAND_H
#define HEADGATE_COMMAND_H

enum command_status {
	COMMAND_OK = 0,
	COMMAND_FAILED = 1,
	COMMAND_USAGE = 2,	 /* or the configuration */
	COMMAND_UNREACHABLE = 3, /* the daemon */
};

/* What stands before the command. */
struct command_options {
	const char *run_dir, *pin_dir;
};

int command_check(int argc, char **argv, const struct command_options *o);
int command_sniff(int argc, char **argv, const struct command_options *o);
int command_status(int argc, char **argv, const struct command_options *o);
int command_reload(int argc, char **argv, const struct command_options *o);

#endif
