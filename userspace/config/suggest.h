/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The known word that somebody may have meant, here or on a command line. */
#ifndef HEADGATE_CONFIG_SUGGEST_H
#define HEADGATE_CONFIG_SUGGEST_H

/* Zero it, and set `word`; then offer all candidates; then read `best`. */
struct config_suggestion {
	const char *word;
	const char *best; /* NULL: nothing is near */
	unsigned int distance;
};

void config_suggest(struct config_suggestion *s, const char *candidate);

#endif
