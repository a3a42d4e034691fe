// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What is done in a worker's thread, because it has to wait for the disk. */
#include "rotate_part.h"

#include "base/util.h"
#include "compressor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* ---- Contents: lines, compressed pieces of them, or IPFIX messages --------------- */

enum {
	CHUNK = 8 << 10,
	MAGIC = 4, /* bytes that tell them apart */
	MESSAGE_HEAD = 16,
};

/* RFC 7011, 3.1: what a message of IPFIX begins with. */
static const char message_version[] = { 0, 10 };

const char *rotate_suffix(int fd)
{
	char head[MAGIC] = "";

	if (pread(fd, head, sizeof(head), 0) < 0)
		return "";
	if (!memcmp(head, gzip_head, sizeof(head)))
		return ".gz";
	return memcmp(head, zstd_head, sizeof(head)) ? "" : ".zst";
}

static bool is_of_lines(int fd)
{
	char head[sizeof(message_version)] = "";

	return !*rotate_suffix(fd) &&
	       (pread(fd, head, sizeof(head), 0) < 0 ||
		memcmp(head, message_version, sizeof(head)));
}

/* The same as piece_len(), for a message. */
static uint64_t message_len(const char *head)
{
	const unsigned char *at = (const unsigned char *)head;
	uint64_t len = (uint64_t)at[2] << 8 | at[3];

	if (memcmp(head, message_version, sizeof(message_version)))
		return 0;
	return len < MESSAGE_HEAD ? 0 : len;
}

/* The end of the last whole piece, of those that begin with their length. */
static int end_of_pieces(int fd, uint64_t size, uint64_t *ret_end)
{
	uint64_t len = 0;

	*ret_end = 0;
	do {
		char head[PIECE_HEAD] = { 0 };

		*ret_end += len;
		if (pread(fd, head, sizeof(head), (off_t)*ret_end) < 0)
			return -errno;
		len = piece_len(head) ?: message_len(head);
	} while (len && len <= size - *ret_end);
	return 0;
}

/* The end of the last whole line. */
static int end_of_lines(int fd, uint64_t size, uint64_t *ret_end)
{
	char chunk[CHUNK];
	const char *newline = NULL;
	uint64_t start = size;

	while (start && !newline) {
		uint64_t end = start;
		ssize_t n;

		start = (end - 1) / CHUNK * CHUNK;
		n = pread(fd, chunk, end - start, (off_t)start);
		if (n < 0)
			return -errno;
		newline = memrchr(chunk, '\n', (size_t)n);
	}
	*ret_end = newline ? start + (uint64_t)(newline + 1 - chunk) : 0;
	return 0;
}

int rotate_cut(int fd, uint64_t *ret_size)
{
	struct stat info;
	uint64_t size;
	int err;

	if (fstat(fd, &info))
		return -errno;
	size = (uint64_t)info.st_size;
	err = is_of_lines(fd) ? end_of_lines(fd, size, ret_size) :
				end_of_pieces(fd, size, ret_size);
	if (!err && *ret_size < size && ftruncate(fd, (off_t)*ret_size))
		err = -errno;
	return err;
}

/* ---- Complete files -------------------------------------------------------------- */

/* NAME.part becomes NAME, or the next one that is free. */
static int give_final_name(const struct rotate_work *work, int dir_fd,
			   const char *name)
{
	rotate_name part, final;
	int err = -EEXIST;

	snprintf(part, sizeof(part), "%.*s" ROTATE_PART,
		 (int)(sizeof(part) - sizeof(ROTATE_PART)), name);
	snprintf(final, sizeof(final), "%s", name);
	for (unsigned int n = 1; err == -EEXIST && n < 100000; n++) {
		err = rotate_move(dir_fd, part, final);
		rotate_names_number(work->names, name, n, final);
	}
	return err;
}

static int finish_file(struct rotate_work *work, int dir_fd, int fd,
		       const char *name)
{
	int err = fdatasync(fd) ? -errno : give_final_name(work, dir_fd, name);

	work->finished += !err;
	return err;
}

/* Another process removed it: nothing is left to do. */
static int finish_files(struct rotate_work *work, int dir_fd)
{
	size_t done = 0;
	int err = 0;

	for (; done < work->n_files; done++) {
		err = finish_file(work, dir_fd, work->files[done].fd,
				  work->files[done].name);
		if (err && err != -ENOENT)
			break;
		close(work->files[done].fd);
		err = 0;
	}
	work->n_files -= done;
	memmove(work->files, work->files + done,
		work->n_files * sizeof(*work->files));
	return err;
}

/* ---- Files in the directory ------------------------------------------------------ */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

typedef int file_fn(struct rotate_work *work, int dir_fd, char *name);

/* Do it in order with the files that have a final name and @tail, but the last @keep. */
static int do_with_files(struct rotate_work *work, int dir_fd, const char *tail,
			 size_t keep, file_fn *do_one)
{
	struct dirent **found;
	int n_all = scandir(work->names->dir, &found, NULL, compare_names);
	size_t n = 0;
	int err = 0;

	if (n_all < 0)
		return -errno;
	for (int i = 0; i < n_all; i++)
		if (rotate_names_match(work->names, found[i]->d_name, tail))
			found[n++] = found[i];
		else
			free(found[i]);
	for (size_t i = 0; i < n; i++) {
		if (i + keep < n)
			err = do_one(work, dir_fd, found[i]->d_name) ?: err;
		free(found[i]);
	}
	free(found);
	return err;
}

static int remove_rotated_file(struct rotate_work *work, int dir_fd, char *name)
{
	if (!unlinkat(dir_fd, name, 0))
		work->removed++;
	else if (errno != ENOENT)
		return -errno;
	return 0;
}

/* A crash has left it; the lock says whether it is one of work->files, or of another process. */
static int recover_file(struct rotate_work *work, int dir_fd, char *part)
{
	cleanup_fd int fd = openat(dir_fd, part,
				   O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint64_t size = 0;
	int err;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	err = rotate_cut(fd, &size);
	if (err)
		return err;
	if (!size)
		return unlinkat(dir_fd, part, 0) ? -errno : 0;
	part[strlen(part) - strlen(ROTATE_PART)] = '\0';
	return finish_file(work, dir_fd, fd, part);
}

/* ---- The work -------------------------------------------------------------------- */

/* After an error, the kernel regards data that it could not write as written. */
static int sync_part(struct rotate_work *work)
{
	if (work->part_fd < 0 || !fdatasync(work->part_fd))
		return 0;
	work->is_lost = true;
	return -errno;
}

void rotate_work_do(void *arg)
{
	struct rotate_work *work = arg;
	cleanup_fd int dir_fd =
		open(work->names->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (dir_fd < 0) {
		err = -errno;
		/* A directory that does not exist has no files left. */
		work->recovers &= err != -ENOENT;
		work->err = err == -ENOENT && !work->n_files ? 0 : err;
		return;
	}
	if (work->recovers)
		work->err = do_with_files(work, dir_fd, ROTATE_PART, 0,
					  recover_file);
	work->recovers &= work->err != 0;
	err = finish_files(work, dir_fd);
	err = sync_part(work) ?: err;
	if (fsync(dir_fd))
		err = -errno;
	work->is_synced = !err;
	work->err = err ?: work->err;
	if (work->keep)
		work->err =
			do_with_files(work, dir_fd, "", work->keep, remove_rotated_file) ?:
				work->err;
}
