// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "io.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* @return what is behind the directory that is never made: "/usr", or none */
static char *skip_first(char *path)
{
	if (*path != '/')
		return path;
	path += strspn(path, "/");
	return path + strcspn(path, "/");
}

int io_make_parents(const char *path)
{
	cleanup_free char *copy = strdup(path);
	char *slash;

	if (!copy)
		return -ENOMEM;
	slash = skip_first(copy);
	slash += strspn(slash, "/");
	while ((slash = strchr(slash, '/'))) {
		*slash = '\0';
		if (mkdir(copy, 0750) && errno != EEXIST)
			return -errno;
		*slash = '/';
		slash += strspn(slash, "/");
	}
	return 0;
}

int io_read_file(const char *path, int flags, size_t max, char **ret_text,
		 size_t *ret_len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
	cleanup_free char *text = NULL;
	char *fitting;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	text = malloc(max + 2);
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, max + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	if (len > max)
		return -EFBIG;
	text[len] = '\0';
	fitting = realloc(text, len + 1);
	text = fitting ?: text;
	*ret_text = TAKE_PTR(text);
	*ret_len = len;
	return 0;
}

void io_read_proc(uint32_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	cleanup_fd int fd = -1;
	size_t len = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	len -= len && text[len - 1] == '\n';
	text[len] = '\0';
}

int io_read_password(const char *path, char *text, size_t size)
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

const char *own_file_refusal(int dir_fd, const struct stat *info)
{
	struct stat dir;

	if (!S_ISREG(info->st_mode))
		return "is no file";
	if (!info->st_uid || info->st_uid == geteuid())
		return NULL;
	return !fstatat(dir_fd, "", &dir, AT_EMPTY_PATH) &&
			       dir.st_uid == info->st_uid ?
		       NULL :
		       "belongs to another user";
}

int own_file_open(int dir_fd, const char *name, int flags, const char **ret_why)
{
	cleanup_fd int fd = openat(
		dir_fd, name,
		flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	const char *why;
	struct stat info;

	if (fd < 0 || fstat(fd, &info))
		return -errno;
	why = own_file_refusal(dir_fd, &info);
	if (!why && info.st_mode & (S_IWGRP | S_IWOTH))
		why = "can be written to by other users";
	if (!why)
		return TAKE_FD(fd);
	*ret_why = why;
	return -EPERM;
}

/* ---- Shared descriptors ------------------------------------------------------------- */

struct shared_fd {
	atomic_int users;
	int fd;
	int beside; /* -1: nothing */
};

struct shared_fd *shared_fd_new(int fd)
{
	struct shared_fd *shared = malloc(sizeof(*shared));

	if (!shared) {
		close_fd(&fd);
		return NULL;
	}
	shared->users = 1;
	shared->fd = fd;
	shared->beside = -1;
	return shared;
}

void shared_fd_put_beside(struct shared_fd *shared, int fd)
{
	close_fd(&shared->beside);
	shared->beside = fd;
}

int shared_fd_beside(const struct shared_fd *shared)
{
	return shared ? shared->beside : -1;
}

struct shared_fd *shared_fd_ref(struct shared_fd *shared)
{
	if (shared)
		atomic_fetch_add(&shared->users, 1);
	return shared;
}

void shared_fd_unref(struct shared_fd *shared)
{
	if (!shared || atomic_fetch_sub(&shared->users, 1) > 1)
		return;
	close_fd(&shared->fd);
	close_fd(&shared->beside);
	free(shared);
}

int shared_fd_get(const struct shared_fd *shared)
{
	return shared ? shared->fd : -1;
}
