// SPDX-License-Identifier: GPL-2.0-or-later
/* headgate reload: the daemon reads its configuration again. */
#include <stdio.h>
#include <string.h>

#include "control_client.h"

#define PATIENCE_S 60 /* very many routes take their time */

static void print_messages(const json_t *answer)
{
	const json_t *messages = json_object_get(answer, "messages");
	size_t i;

	for (i = 0; i < json_array_size(messages); i++)
		fprintf(stderr, "%s\n",
			json_string_value(json_array_get(messages, i)));
}

/* An error of the configuration is already among the messages. */
static int failure(const json_t *answer, bool is_json)
{
	const char *kind = json_string_value(json_object_get(answer, "kind"));
	const char *error = json_string_value(json_object_get(answer, "error"));
	bool is_config = kind && !strcmp(kind, "configuration");

	if (!is_json && is_config)
		fprintf(stderr, "headgate: not reloaded; what was in force "
				"still is\n");
	else if (!is_json)
		fprintf(stderr, "headgate: not reloaded: %s\n",
			error ? error : "no reason was given");
	return is_config ? COMMAND_USAGE : COMMAND_FAILED;
}

int command_reload(int argc, char **argv, const struct command_options *o)
{
	json_t *answer;
	bool is_json, is_ok;
	int status = control_client_options(
		argc, argv, "usage: headgate reload [--json]\n\n"
		"  -j, --json  the answer as one JSON object\n", &is_json);

	if (status >= 0)
		return status;
	status = control_client_ask(o->run_dir, "reload", PATIENCE_S, &answer);
	if (status != COMMAND_OK)
		return status;
	if (is_json)
		control_client_print(answer);
	else
		print_messages(answer);
	is_ok = json_is_true(json_object_get(answer, "ok"));
	if (!is_ok)
		status = failure(answer, is_json);
	else if (!is_json)
		printf("reloaded, generation %lld\n",
		       (long long)json_integer_value(
			       json_object_get(answer, "generation")));
	json_decref(answer);
	return status;
}
