/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CLI's end of the control socket. */
#ifndef HEADGATE_CONTROL_CLIENT_H
#define HEADGATE_CONTROL_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "command.h"

/*
 * Sends one command and waits for each part of its answer, which the caller
 * frees by json_decref(), for so many seconds: COMMAND_OK. Else
 * COMMAND_UNREACHABLE, and stderr says why.
 */
int control_client_ask(const char *run_dir, const char *command,
		       unsigned int patience_s, json_t **answer);

/*
 * The options of a command that takes --json and --help and nothing else:
 * -1 to go on, or the exit status.
 */
int control_client_options(int argc, char **argv, const char *help,
			   bool *is_json);

/* One JSON object on stdout, with its newline. */
int control_client_print(const json_t *answer);

#endif
