/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_BASE_PASSWORD_H
#define NETOBS_BASE_PASSWORD_H

#include <stddef.h>

/**
 * Read the first line of a file: a password or a token, which a command line would show.
 *
 * @param text  erase it after use: explicit_bzero()
 * @return 0; -ENODATA: the line is empty; -ENAMETOOLONG: it is longer than @size; others: as
 *         open(2)
 */
int password_read(const char *path, char *text, size_t size);

#endif
