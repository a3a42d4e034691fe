// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_places.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Opening ------------------------------------------------------------------------------ */

static int open_how(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	const struct open_how how = { .flags = flags | O_CLOEXEC,
				      .resolve = resolve | RESOLVE_NO_MAGICLINKS };
	const int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int container_files_dir(const struct container_files *files, const char *path)
{
	return open_how(files->root_fd, path, O_RDONLY | O_DIRECTORY,
			RESOLVE_IN_ROOT);
}

int container_files_below(int dir_fd, const char *path, uint64_t flags)
{
	return open_how(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* ---- Errors ------------------------------------------------------------------------------- */

bool container_error_equal(const struct container_error *a,
			   const struct container_error *b)
{
	return a->error == b->error &&
	       (a->error == -EACCES || !strcmp(a->path, b->path));
}

void container_errors_add(struct container_errors *errors, int error,
			  const char *path)
{
	struct container_error added = { .error = error };

	snprintf(added.path, sizeof(added.path), "%s", path);
	for (uint32_t i = 0; i < errors->n; i++)
		if (container_error_equal(&errors->list[i], &added))
			return;
	if (errors->n < CONTAINER_ERRORS_MAX)
		errors->list[errors->n++] = added;
}

/* A file that does not exist, or that its runtime is writing, is no error. */
static bool is_passing(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -EAGAIN;
}

void container_files_note(struct container_files *files, int err,
			  const char *dir, const char *name)
{
	char path[sizeof(files->errors.list[0].path)];

	if (is_passing(err))
		return;
	snprintf(path, sizeof(path), "/%s%s%s", dir, *name ? "/" : "", name);
	container_errors_add(&files->errors, err, path);
}

/* ---- Files -------------------------------------------------------------------------------- */

static int check_file(int fd, size_t max, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* @return 0, with the text in new memory; or -errno: also where it has a NUL; -EAGAIN: it grows */
static int read_text(int fd, size_t max, char **ret_text)
{
	cleanup_free char *text = NULL;
	size_t len = 0, size = 0;
	ssize_t n;
	int err = check_file(fd, max, &size);

	if (err)
		return err;
	text = malloc(size + 2);
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, size + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	text[len] = '\0';
	if (len > size)
		return -EAGAIN;
	if (strlen(text) != len)
		return -EINVAL;
	*ret_text = TAKE_PTR(text);
	return 0;
}

char *container_files_read(struct container_files *files, int dir_fd,
			   const char *dir, const char *path, size_t max)
{
	cleanup_fd int fd = container_files_below(dir_fd, path, 0);
	char *text = NULL;
	const int err = fd < 0 ? fd : read_text(fd, max, &text);

	if (err)
		container_files_note(files, err, dir, path);
	return text;
}

/* ---- The root ----------------------------------------------------------------------------- */

int container_files_open(const char *root, struct container_files *ret_files)
{
	struct container_files files = {
		.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)
	};

	if (files.root_fd < 0)
		return -errno;
	*ret_files = files;
	return 0;
}

void container_files_close(struct container_files *files)
{
	close_fd(&files->root_fd);
}
