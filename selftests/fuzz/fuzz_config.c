// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text that is a configuration must print as a text that is one and prints as
 * itself. Nothing is opened: `include` and `file` are errors in flat text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void note(void *context, bool is_error, const char *line)
{
	unsigned int *nr_errors = context;

	/* "name:line:column: kind: text", in one line of plain text */
	require(!strncmp(line, "fuzz:", 5));
	require(strstr(line, is_error ? ": error: " : ": warning: "));
	for (; *line; line++)
		require(*line >= ' ' && *line <= '~');
	*nr_errors += is_error;
}

static char *print(const struct config *c, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	require(out && !config_print(c, out, true) && !fclose(out));
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int nr_errors = 0;
	struct config *c, *again;
	size_t len, again_len;
	char *text, *again_text;

	c = config_parse_flat("fuzz", (const char *)data, size, note,
			      &nr_errors);
	require(!c == (nr_errors > 0));
	if (!c)
		return 0;
	text = print(c, &len);
	again = config_parse_flat("fuzz", text, len, note, &nr_errors);
	require(again && !nr_errors);
	again_text = print(again, &again_len);
	require(len == again_len && !memcmp(text, again_text, len));
	free(text);
	free(again_text);
	config_free(again);
	config_free(c);
	return 0;
}
