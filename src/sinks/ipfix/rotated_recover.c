// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotated.h"

#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { HEADER_LEN = 16, IPFIX_VERSION = 10 };

struct recovery {
	struct rotated_jobs *jobs;
	char path[PATH_MAX];
};

/* Where its last whole message ends. */
static off_t find_end(int fd, off_t size)
{
	uint8_t header[4];
	off_t at = 0;

	while (pread(fd, header, sizeof(header), at) == sizeof(header)) {
		off_t len = header[2] << 8 | header[3];

		if (header[0] || header[1] != IPFIX_VERSION ||
		    len < HEADER_LEN || at + len > size)
			break;
		at += len;
	}
	return at;
}

/* Who has it locked is still writing it. */
static void recover_file(const char *part)
{
	cleanup_fd int fd = open(part, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	char name[PATH_MAX];
	struct stat info;
	off_t end;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &info) ||
	    !S_ISREG(info.st_mode))
		return;
	end = find_end(fd, info.st_size);
	if (!end) {
		unlink(part);
		return;
	}
	snprintf(name, sizeof(name), "%.*s",
		 (int)(strlen(part) - strlen(ROTATED_PART)), part);
	if (!access(name, F_OK) || ftruncate(fd, end))
		return;
	rotated_complete(TAKE_FD(fd), part, name);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* STEM-TIME.EXT.part */
static bool is_part(const char *name, const char *stem, size_t stem_len,
		    const char *extension)
{
	char tail[NAME_MAX + 1];

	snprintf(tail, sizeof(tail), "%s" ROTATED_PART, extension);
	return !strncmp(name, stem, stem_len) && name[stem_len] == '-' &&
	       name[stem_len + 1] >= '0' && name[stem_len + 1] <= '9' &&
	       ends_with(name, tail);
}

static void *recover(void *arg)
{
	struct recovery *recovery = arg;
	struct rotated_jobs *jobs = recovery->jobs;
	const char *path = recovery->path, *slash = strrchr(path, '/'),
		   *extension;
	size_t dir_len = slash ? (size_t)(slash - path) + 1 : 0;
	size_t stem_len = (size_t)rotated_split(path, &extension) - dir_len;
	char name[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(name, sizeof(name), "%.*s", (int)dir_len, path);
	dir = opendir(dir_len ? name : ".");
	while (dir && (entry = readdir(dir))) {
		if (!is_part(entry->d_name, path + dir_len, stem_len, extension))
			continue;
		if (snprintf(name, sizeof(name), "%.*s%s", (int)dir_len, path,
			     entry->d_name) < (int)sizeof(name))
			recover_file(name);
	}
	if (dir)
		closedir(dir);
	free(recovery);
	rotated_done(jobs);
	return NULL;
}

void rotated_recover(struct rotated *file, const char *path)
{
	struct recovery *recovery = malloc(sizeof(*recovery));

	if (!recovery)
		return;
	recovery->jobs = &file->jobs;
	snprintf(recovery->path, sizeof(recovery->path), "%s", path);
	rotated_run(&file->jobs, recover, recovery);
}
