// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "io.h"

#include <errno.h>
#include <unistd.h>

int io_write(int fd, const void *bytes, size_t len, size_t *at)
{
	while (*at < len) {
		ssize_t n = write(fd, (const char *)bytes + *at, len - *at);

		if (n >= 0)
			*at += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}
