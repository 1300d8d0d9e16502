// SPDX-License-Identifier: GPL-2.0-or-later
#include "suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define WORD_MAX 64

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Damerau and Levenshtein: inserted, missing and wrong letters, and swapped
 * neighbours, count one each (restricted: no pair is edited twice).
 */
static unsigned int distance(const char *a, size_t a_len, const char *b,
			     size_t b_len)
{
	unsigned int rows[3][WORD_MAX + 1];
	size_t i, j;

	for (j = 0; j <= b_len; j++)
		rows[0][j] = (unsigned int)j;
	for (i = 1; i <= a_len; i++) {
		unsigned int *now = rows[i % 3], *last = rows[(i + 2) % 3];
		const unsigned int *before = rows[(i + 1) % 3];

		now[0] = (unsigned int)i;
		for (j = 1; j <= b_len; j++) {
			unsigned int cost = !same(a[i - 1], b[j - 1]);

			now[j] = min(last[j - 1] + cost,
				     min(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
			    same(a[i - 2], b[j - 1]))
				now[j] = min(now[j], before[j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len];
}

void config_suggest(struct config_suggestion *s, const char *candidate)
{
	size_t a_len = strlen(s->word), b_len = strlen(candidate);
	unsigned int allowed, d;

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return;
	/* a third of the letters may be wrong, at most three */
	allowed = min(3, (unsigned int)(a_len > b_len ? a_len : b_len) / 3);
	d = distance(s->word, a_len, candidate, b_len);
	if (d > allowed || (s->best && d >= s->distance))
		return;
	s->best = candidate;
	s->distance = d;
}
