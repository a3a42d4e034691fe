/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "options.h"

#include <limits.h>
#include <string.h>

enum { MAX_LENGTH = 32 };

static unsigned int find_least(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int least = a < b ? a : b;

	return least < c ? least : c;
}

/*
 * Letters to insert, delete, replace or swap with the next one. A row of the usual
 * table has the distances of all beginnings of @b from a beginning of @a.
 */
static unsigned int edit_distance(const char *a, size_t a_len, const char *b)
{
	unsigned int rows[3][MAX_LENGTH + 1];
	size_t b_len = strlen(b);

	if (a_len > MAX_LENGTH || b_len > MAX_LENGTH)
		return UINT_MAX;
	for (unsigned int j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (unsigned int i = 1; i <= a_len; i++) {
		unsigned int *row = rows[i % 3], *above = rows[(i - 1) % 3],
			     *higher = rows[(i + 1) % 3];

		row[0] = i;
		for (unsigned int j = 1; j <= b_len; j++) {
			unsigned int differ = a[i - 1] != b[j - 1];

			row[j] = find_least(above[j] + 1, row[j - 1] + 1,
					    above[j - 1] + differ);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && higher[j - 2] + 1 < row[j])
				row[j] = higher[j - 2] + 1;
		}
	}
	return rows[a_len % 3][b_len];
}

struct suggestion suggestion_for(const char *typed, size_t len)
{
	return (struct suggestion){ typed, len, NULL, UINT_MAX };
}

void suggestion_offer(struct suggestion *suggestion, const char *word)
{
	unsigned int d = edit_distance(suggestion->typed, suggestion->len, word);

	if (d >= suggestion->distance)
		return;
	suggestion->best = word;
	suggestion->distance = d;
}

const char *suggestion_best(const struct suggestion *suggestion)
{
	/* Nearly all short words are close to each other. */
	unsigned int most = suggestion->len < 4 ? 1 : 2;

	return suggestion->distance <= most ? suggestion->best : NULL;
}
