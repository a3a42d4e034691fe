/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Lines on their way to a reader, in the order of their bytes, and their records. */
#ifndef NETOBS_SINKS_JSON_LINE_MARKS_H
#define NETOBS_SINKS_JSON_LINE_MARKS_H

#include "sink/mark.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_marks {
	struct line_mark {
		uint64_t end; /* bytes up to the end of the line */
		struct mark mark;
	} * ring;
	size_t size, first, n;
	uint64_t end; /* of the last line */
};

void line_marks_free(struct line_marks *marks);

/* Begin with byte 0 again. */
void line_marks_clear(struct line_marks *marks);

/* A line of @len bytes ends the records before @mark. -ENOMEM: it is not kept. */
int line_marks_add(struct line_marks *marks, size_t len, struct mark mark);

/* Forget the lines within the first @bytes: the last one's mark; false: there is none. */
bool line_marks_take(struct line_marks *marks, uint64_t bytes,
		     struct mark *ret_mark);

#endif
