/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file for results. It is opened before measuring, so that an error shows
 * early, and changed only when the results are there.
 */
#ifndef NETOBS_BENCH_FILE_H
#define NETOBS_BENCH_FILE_H

#include <stdbool.h>

struct results;

struct file {
	const char *path; /* NULL: none; nothing below does anything */
	int fd;
	bool is_new;
};

/* Says on stderr why it fails, as file_write() does. */
int file_open(struct file *file, const char *path);

/* Replace the contents by what @write writes to a descriptor. */
int file_write(struct file *file, const struct results *results,
	       int (*write)(const struct results *results, int fd));

/* A new file that was not written to does not stay. */
void file_close(struct file *file);

#endif
