/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Replaces a file as a whole: readers see the old one or the new one, and a failure leaves the old one. */
#ifndef NETOBS_SERVICE_FILE_REPLACEMENT_H
#define NETOBS_SERVICE_FILE_REPLACEMENT_H

#include <stdio.h>
#include <sys/types.h>

struct file_replacement {
	FILE *file;   /* to write to */
	char *path;   /* path of the file to replace */
	char *beside; /* path of the new file, which is renamed to @path; NULL: @path is written in place */
};

/**
 * Begin to replace @path by a file with its mode. A path that is no regular file, such as a pipe, a link or
 * /dev/stdout, is written in place.
 *
 * @return 0; < 0: do not call file_replacement_end()
 */
int file_replacement_begin(struct file_replacement *replacement,
			   const char *path);

/**
 * Begin to replace @path, of any type, by a regular file with @mode, whatever the umask; 0: as the umask says. @path is
 * not opened, so this does not wait for the reader of a pipe.
 *
 * @return as file_replacement_begin()
 */
int file_replacement_begin_new(struct file_replacement *replacement,
			       const char *path, mode_t mode);

/**
 * Finish.
 *
 * @param err  0: put the new file in place; < 0: remove it
 * @return 0; @err; < 0: the new file could not be written
 */
int file_replacement_end(struct file_replacement *replacement, int err);

#endif
