// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "line_positions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MIN = 1024 };

void line_positions_free(struct line_positions *positions)
{
	free(positions->ring);
	*positions = (struct line_positions){ 0 };
}

void line_positions_clear(struct line_positions *positions)
{
	positions->first = positions->n = 0;
	positions->end = 0;
}

static struct line_position *find_position(const struct line_positions *positions,
					   size_t n)
{
	return &positions->ring[(positions->first + n) % positions->size];
}

static int grow_positions(struct line_positions *positions)
{
	size_t size = positions->size ? 2 * positions->size : SIZE_MIN;
	struct line_position *ring = calloc(size, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (size_t i = 0; i < positions->n; i++)
		ring[i] = *find_position(positions, i);
	free(positions->ring);
	positions->ring = ring;
	positions->size = size;
	positions->first = 0;
	return 0;
}

int line_positions_add(struct line_positions *positions, size_t len,
		       struct position position)
{
	int err;

	positions->end += len;
	err = positions->n == positions->size ? grow_positions(positions) : 0;
	if (err)
		return err;
	*find_position(positions, positions->n++) =
		(struct line_position){ positions->end, position };
	return 0;
}

bool line_positions_take(struct line_positions *positions, uint64_t bytes,
			 struct position *ret_position)
{
	bool is_any = false;

	while (positions->n && find_position(positions, 0)->end <= bytes) {
		*ret_position = find_position(positions, 0)->position;
		positions->first = (positions->first + 1) % positions->size;
		positions->n--;
		is_any = true;
	}
	return is_any;
}
