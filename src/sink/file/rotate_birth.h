/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * When a file was created. Apart from all that includes sys/stat.h, which declares
 * struct statx in some C libraries only (musl since 1.2.5).
 */
#ifndef NETOBS_SINK_FILE_ROTATE_BIRTH_H
#define NETOBS_SINK_FILE_ROTATE_BIRTH_H

#include <time.h>

/* Returns 0, or -EOPNOTSUPP if the file system does not know, or -errno. */
int rotate_birth_time(int fd, time_t *ret_time);

#endif
