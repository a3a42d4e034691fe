/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Replaces a file as a whole: readers see the old one or the new one, and a failure leaves the old one. */
#ifndef NETOBS_SERVICE_FILE_REPLACEMENT_H
#define NETOBS_SERVICE_FILE_REPLACEMENT_H

#include <stdio.h>
#include <sys/types.h>

struct file_replacement {
	FILE *file; /* to write to */
	char *path,
		*beside; /* the second one becomes the first; NULL: written in place */
};

/**
 * Begin. What is no regular file, such as a pipe or /dev/stdout, is written in place; so is a file that no other
 * one can replace, because of its directory or its owner.
 *
 * @return 0; < 0: there is nothing to end
 */
int file_replacement_begin(struct file_replacement *replacement,
			   const char *path);

/**
 * Begin, with a regular file that has @mode whatever the umask, and that replaces what is at @path whatever it is:
 * nothing there is opened, so this waits for no reader of a pipe.
 *
 * @return as file_replacement_begin()
 */
int file_replacement_begin_new(struct file_replacement *replacement,
			       const char *path, mode_t mode);

/**
 * End.
 *
 * @param err  0: put the new file in place; < 0: remove it
 * @return 0; @err; < 0: it could not be written
 */
int file_replacement_end(struct file_replacement *replacement, int err);

#endif
