/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "file_replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

static int copy_owner(int fd, const struct stat *old)
{
	return fchown(fd, old->st_uid, old->st_gid) ||
			       fchmod(fd, old->st_mode & 0777) ?
		       -EPERM :
		       0;
}

/* The new file gets the owner and mode of the old one. */
static int open_beside(struct file_replacement *replacement,
		       const struct stat *old)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd, r;

	if (asprintf(&replacement->beside, "%s.%ld.new", replacement->path,
		     (long)getpid()) < 0) {
		replacement->beside = NULL;
		return -ENOMEM;
	}
	unlink(replacement->beside); /* left by an earlier process */
	fd = open(replacement->beside, flags, 0666);
	if (fd < 0)
		return -errno;
	r = old ? copy_owner(fd, old) : 0;
	if (!r) {
		replacement->file = fdopen(fd, "w");
		if (replacement->file)
			return 0;
		r = -ENOMEM;
	}
	close(fd);
	unlink(replacement->beside);
	return r;
}

static void forget(struct file_replacement *replacement)
{
	free(replacement->path);
	free(replacement->beside);
	*replacement = (struct file_replacement){ 0 };
}

static int open_in_place(struct file_replacement *replacement, const char *path)
{
	forget(replacement);
	replacement->file = fopen(path, "we");
	return replacement->file ? 0 : -errno;
}

int file_replacement_begin(struct file_replacement *replacement, const char *path)
{
	struct stat old;
	const bool is_old = !stat(path, &old);
	int r;

	*replacement = (struct file_replacement){ 0 };
	if (is_old && !S_ISREG(old.st_mode))
		return open_in_place(replacement, path);
	/* A symbolic link stays: the file that it leads to is replaced. */
	replacement->path = is_old ? realpath(path, NULL) : strdup(path);
	r = replacement->path ? open_beside(replacement, is_old ? &old : NULL) :
				-errno;
	/* A directory or an owner that only the old file may have. */
	if (is_old && (r == -EACCES || r == -EPERM))
		return open_in_place(replacement, path);
	if (r)
		forget(replacement);
	return r;
}

int file_replacement_begin_new(struct file_replacement *replacement,
			       const char *path, mode_t mode)
{
	int r;

	*replacement = (struct file_replacement){ .path = strdup(path) };
	r = replacement->path ? open_beside(replacement, NULL) : -ENOMEM;
	if (r) {
		forget(replacement);
		return r;
	}
	if (!fchmod(fileno(replacement->file), mode))
		return 0;
	return file_replacement_end(replacement, -errno);
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
