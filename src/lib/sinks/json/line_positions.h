/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Lines on their way to a reader, in the order of their bytes, and their records. */
#ifndef NETOBS_SINKS_JSON_LINE_POSITIONS_H
#define NETOBS_SINKS_JSON_LINE_POSITIONS_H

#include "sink/spool/position.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_positions {
	struct line_position {
		uint64_t end; /* bytes up to the end of the line */
		struct position position;
	} * ring;
	size_t size, first, n;
	uint64_t end; /* of the last line */
};

void line_positions_free(struct line_positions *positions);

/* Begin with byte 0 again. */
void line_positions_clear(struct line_positions *positions);

/* A line of @len bytes ends the records before @position. -ENOMEM: it is not kept. */
int line_positions_add(struct line_positions *positions, size_t len,
		       struct position position);

/* Forget the lines within the first @bytes: the last one's position; false: there is none. */
bool line_positions_take(struct line_positions *positions, uint64_t bytes,
			 struct position *ret_position);

#endif
