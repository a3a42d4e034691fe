/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The file that is being written, of those that are rotated. */
#ifndef NETOBS_SINK_FILE_ROTATE_PART_H
#define NETOBS_SINK_FILE_ROTATE_PART_H

#include "rotate_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rotate_part {
	int fd; /* -1: it is not open */
	dev_t dev;
	ino_t ino;
	uint64_t size;	/* what was written */
	uint64_t whole; /* of that, up to the end of a line */
	int64_t start_ms;
};

/*
 * Make it, and keep others from it; what a crash has left gets another name, for
 * rotate_work to finish. Errors: as open(2); -EBUSY: another process has it.
 */
int rotate_part_open(struct rotate_part *part, const struct rotate_names *names,
		     mode_t mode);

/* Whether it still has its name. */
bool rotate_part_is_there(const struct rotate_part *part,
			  const struct rotate_names *names);

/* What the last file was called. */
struct rotate_last {
	time_t start;
	unsigned int number;
};

/*
 * Give it the name FINAL.part; @ret_name becomes FINAL. Of those of a second, the next
 * number, also where a lower one has become free.
 */
int rotate_part_rename(const struct rotate_names *names, time_t start,
		       const char *suffix, struct rotate_last *last,
		       rotate_name ret_name);

/* It is empty, or another process has removed it. */
void rotate_part_remove(struct rotate_part *part,
			const struct rotate_names *names);

#endif
