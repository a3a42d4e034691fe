/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "file_replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

static void forget(struct file_replacement *replacement)
{
	free(replacement->path);
	free(replacement->beside);
	*replacement = (struct file_replacement){ 0 };
}

int file_replacement_begin_new(struct file_replacement *replacement,
			       const char *path, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	cleanup_free char *beside = NULL;
	int fd, err;

	*replacement = (struct file_replacement){ 0 };
	if (asprintf(&beside, "%s.%ld.new", path, (long)getpid()) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	unlink(beside); /* left by an earlier process */
	fd = open(beside, flags, 0666);
	if (fd < 0)
		return -errno;
	*replacement = (struct file_replacement){ .file = fdopen(fd, "w"),
						  .path = strdup(path),
						  .beside = TAKE_PTR(beside) };
	if (!replacement->file) {
		close(fd);
		unlink(replacement->beside);
		forget(replacement);
		return -ENOMEM;
	}
	err = !replacement->path       ? -ENOMEM :
	      mode && fchmod(fd, mode) ? -errno :
					 0;
	return err ? file_replacement_end(replacement, err) : 0;
}

int file_replacement_begin(struct file_replacement *replacement, const char *path)
{
	cleanup_free char *target = realpath(path, NULL);
	struct stat old = { 0 };
	int err = -EACCES;

	if (!target || (!stat(target, &old) && S_ISREG(old.st_mode)))
		err = file_replacement_begin_new(replacement, target ?: path,
						 old.st_mode & 0777);
	if (err != -EACCES && err != -EPERM)
		return err;
	/* A device, a pipe, or a file in a directory that others own: written where it is. */
	*replacement = (struct file_replacement){ .file = fopen(path, "we") };
	return replacement->file ? 0 : -errno;
}

int file_replacement_end(struct file_replacement *replacement, int err)
{
	const bool is_failed = ferror(replacement->file);

	if (fclose(replacement->file) && !err)
		err = -errno;
	if (is_failed && !err)
		err = -EIO;
	if (replacement->beside) {
		if (!err && rename(replacement->beside, replacement->path))
			err = -errno;
		if (err)
			unlink(replacement->beside);
	}
	forget(replacement);
	return err;
}
