/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Files that netobs has made, and trusts when it reads them again. In a sticky directory such as
 * /tmp, any user can make a file of any name.
 */
#ifndef NETOBS_BASE_OWN_FILE_H
#define NETOBS_BASE_OWN_FILE_H

#include <sys/stat.h>

/*
 * It belongs to root, to this user, or to the owner of the directory @dir_fd, who could replace it.
 *
 * @return NULL; else what is wrong, to be put behind its name
 */
const char *own_file_refusal(int dir_fd, const struct stat *info);

/**
 * openat(2) of such a file, which no other user can write to. New files are for this user alone.
 *
 * @param flags    beside those that keep it from following links and from waiting
 * @param ret_why  with -EPERM: what is wrong; else unchanged
 * @return a descriptor, or -errno
 */
int own_file_open(int dir_fd, const char *name, int flags, const char **ret_why);

#endif
