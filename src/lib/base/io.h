/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_BASE_IO_H
#define NETOBS_BASE_IO_H

#include <stddef.h>

/*
 * Write @bytes from *@at on, which is advanced by the bytes written, also on failure.
 * @return 0 once all @len bytes are written, or as write(2), but for -EINTR
 */
int io_write(int fd, const void *bytes, size_t len, size_t *at);

#endif
