// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "password.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int password_read(const char *path, char *text, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	if (len < 0)
		return -errno;
	text[len] = '\0';
	if ((size_t)len == size - 1 && !strpbrk(text, "\r\n"))
		return -ENAMETOOLONG;
	text[strcspn(text, "\r\n")] = '\0';
	return *text ? 0 : -ENODATA;
}
