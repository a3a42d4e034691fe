/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The file that is being written, of those that are rotated. */
#ifndef NETOBS_SINK_FILE_ROLL_PART_H
#define NETOBS_SINK_FILE_ROLL_PART_H

#include "roll_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct roll_part {
	int fd; /* -1: it is not open */
	dev_t dev;
	ino_t ino;
	uint64_t size;	/* what was written */
	uint64_t whole; /* of that, up to the end of a line */
	int64_t start_ms;
};

/*
 * Make it, and keep others from it; what a crash has left gets another name, for
 * roll_work to finish. Errors: as open(2); -EBUSY: another process has it.
 */
int roll_part_open(struct roll_part *part, const struct roll_names *names,
		   mode_t mode);

/* Whether it still has its name. */
bool roll_part_is_there(const struct roll_part *part,
			const struct roll_names *names);

/* What the last file was called. */
struct roll_last {
	time_t start;
	unsigned int number;
};

/*
 * Give it the name FINAL.part; @ret_name becomes FINAL. Of those of a second, the next
 * number, also where a lower one has become free.
 */
int roll_part_rename(const struct roll_names *names, time_t start,
		     const char *suffix, struct roll_last *last,
		     roll_name ret_name);

/* It is empty, or another process has removed it. */
void roll_part_remove(struct roll_part *part, const struct roll_names *names);

#endif
