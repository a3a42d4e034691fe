// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "line_marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MIN = 1024 };

void line_marks_free(struct line_marks *marks)
{
	free(marks->ring);
	*marks = (struct line_marks){ 0 };
}

void line_marks_clear(struct line_marks *marks)
{
	marks->first = marks->n = 0;
	marks->end = 0;
}

static struct line_mark *at(const struct line_marks *marks, size_t n)
{
	return &marks->ring[(marks->first + n) % marks->size];
}

static int grow_marks(struct line_marks *marks)
{
	size_t size = marks->size ? 2 * marks->size : SIZE_MIN;
	struct line_mark *ring = calloc(size, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (size_t i = 0; i < marks->n; i++)
		ring[i] = *at(marks, i);
	free(marks->ring);
	marks->ring = ring;
	marks->size = size;
	marks->first = 0;
	return 0;
}

int line_marks_add(struct line_marks *marks, size_t len, struct mark mark)
{
	int err;

	marks->end += len;
	err = marks->n == marks->size ? grow_marks(marks) : 0;
	if (err)
		return err;
	*at(marks, marks->n++) = (struct line_mark){ marks->end, mark };
	return 0;
}

bool line_marks_take(struct line_marks *marks, uint64_t bytes,
		     struct mark *ret_mark)
{
	bool is_any = false;

	while (marks->n && at(marks, 0)->end <= bytes) {
		*ret_mark = at(marks, 0)->mark;
		marks->first = (marks->first + 1) % marks->size;
		marks->n--;
		is_any = true;
	}
	return is_any;
}
