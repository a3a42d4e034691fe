/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The names of a file that is rotated. What is written to DIR/flows.json goes to
 *
 *   flows.json.part                        while it is written
 *   flows-20261121T164500Z.json.part       until it is on the disk
 *   flows-20261121T164500Z.json            then
 *   flows-20261121T164500Z_001.json        if there is one of that name
 *
 * with .gz or .zst before .part. The time is that of its first record's writing, UTC.
 * In alphabetical order the names are in order of time.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_NAMES_H
#define NETOBS_SINK_FILE_ROTATE_NAMES_H

#include <limits.h>
#include <stdbool.h>
#include <time.h>

#define ROTATE_PART ".part"

struct rotate_names {
	char dir[PATH_MAX]; /* absolute */
	char stem[NAME_MAX], extension[NAME_MAX];
	char part[NAME_MAX + 1]; /* flows.json.part */
};

typedef char rotate_name[NAME_MAX + 1];

/* -EISDIR: @path is of a directory; -ENAMETOOLONG. */
int rotate_names_init(struct rotate_names *names, const char *path);

/* The final name, number 0. @suffix: ".gz", ".zst" or "". */
void rotate_names_make(const struct rotate_names *names, time_t start,
		       const char *suffix, rotate_name ret_name);

/* The same final name with another number. */
void rotate_names_number(const struct rotate_names *names, const char *name,
			 unsigned int number, rotate_name ret_name);

/* Whether it is a final name, with @tail behind. */
bool rotate_names_match(const struct rotate_names *names, const char *name,
			const char *tail);

#endif
