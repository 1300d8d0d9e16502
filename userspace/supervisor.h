/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The privileged half: signals, the control socket, listening sockets, and the
 * router's life. It never touches a byte from the network.
 */
#ifndef HEADGATE_SUPERVISOR_H
#define HEADGATE_SUPERVISOR_H

struct supervisor_options {
	const char *config_path, *run_dir, *pin_dir;
};

enum supervisor_status {
	SUPERVISOR_OK = 0,
	SUPERVISOR_FAILED = 1,
	SUPERVISOR_USAGE = 2, /* or the configuration */
};

/* `headgated -t`: reads the configuration and says what is wrong with it. */
int supervisor_check(const struct supervisor_options *o);

/* Runs until it was told to stop; returns the exit status. */
int supervisor_run(const struct supervisor_options *o);

#endif
