/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "file.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int complain(const struct file *file, int err)
{
	if (err)
		fprintf(stderr, "netobsctl bench: %s: %s\n", file->path,
			strerror(-err));
	return err;
}

int file_open(struct file *file, const char *path)
{
	*file = (struct file){ .path = path, .fd = -1 };
	if (!path)
		return 0;
	file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	file->is_new = file->fd >= 0;
	if (file->fd < 0 && errno == EEXIST)
		file->fd = open(path, O_WRONLY | O_CLOEXEC);
	return file->fd < 0 ? complain(file, -errno) : 0;
}

int file_write(struct file *file, const struct results *results,
	       int (*write)(const struct results *results, int fd))
{
	if (!file->path)
		return 0;
	/* Pipes and terminals have nothing to be cut off. */
	if (ftruncate(file->fd, 0) < 0 && errno != EINVAL)
		return complain(file, -errno);
	file->is_new = false;
	return complain(file, write(results, file->fd));
}

void file_close(struct file *file)
{
	close_fd(&file->fd);
	if (file->is_new)
		unlink(file->path);
}
