/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_BASE_DIRS_H
#define NETOBS_BASE_DIRS_H

/*
 * Make the directories that lead to @path, with mode 0750, as far as they are missing;
 * but none in the root directory, where one is missing only by a typing error.
 * Errors: as mkdir(2).
 */
int dirs_make_parents(const char *path);

#endif
