/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Files: reading and writing all, the directories on a path, a line that is secret. */
#ifndef NETOBS_BASE_IO_H
#define NETOBS_BASE_IO_H

#include <stddef.h>

/*
 * Write @bytes from *@at on, which is advanced by the bytes written, also on failure.
 * @return 0 once all @len bytes are written, or as write(2), but for -EINTR
 */
int io_write(int fd, const void *bytes, size_t len, size_t *at);

/*
 * Make the directories that lead to @path, with mode 0750, as far as they are missing;
 * but none in the root directory, where one is missing only by a typing error.
 * Errors: as mkdir(2).
 */
int io_make_parents(const char *path);

/**
 * Read a file whole.
 *
 * @param flags     of open(2), beside O_RDONLY
 * @param ret_text  its @ret_len bytes, and a NUL; the caller's
 * @return 0; -EFBIG: it has more than @max bytes; -ENOMEM; others: as open(2) and read(2)
 */
int io_read_file(const char *path, int flags, size_t max, char **ret_text,
		 size_t *ret_len);

/**
 * Read the first line of a file: a password or a token, which a command line would show.
 *
 * @param text  erase it after use: explicit_bzero()
 * @return 0; -ENODATA: the line is empty; -ENAMETOOLONG: it is longer than @size; others: as
 *         open(2)
 */
int io_read_password(const char *path, char *text, size_t size);

#endif
