// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_dir.h"

#include "crc32c.h"
#include "util.h"
#include "spool_recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct acked_file {
	char magic[8];
	struct spool_progress progress;
	uint32_t crc; /* CRC-32C of what precedes */
	uint32_t reserved;
};

static const char acked_magic[8] = "netobsAK";

void spool_dir_name(uint64_t first_seq, char name[SPOOL_NAME_SIZE])
{
	snprintf(name, SPOOL_NAME_SIZE, "%016" PRIx64 ".seg", first_seq);
}

/* ---- Progress ------------------------------------------------------------------ */

static uint32_t crc_of_acked(const struct acked_file *file)
{
	return crc32c(0, file, offsetof(struct acked_file, crc));
}

static int write_file(int dir_fd, const char *name, int flags,
		      const struct acked_file *file)
{
	cleanup_fd int fd =
		openat(dir_fd, name, O_WRONLY | O_CLOEXEC | flags, 0600);

	if (fd < 0)
		return -errno;
	errno = EIO; /* of a short write */
	return write(fd, file, sizeof(*file)) != sizeof(*file) || fdatasync(fd) ?
		       -errno :
		       0;
}

/*
 * Where there is no room for a second file, the first is overwritten: or no segment
 * could ever go, and make room. A crash in there costs no more than repetition.
 */
int spool_dir_write_progress(int dir_fd, const struct spool_progress *progress)
{
	struct acked_file file = { .progress = *progress };
	int err;

	memcpy(file.magic, acked_magic, sizeof(acked_magic));
	file.crc = crc_of_acked(&file);
	err = write_file(dir_fd, "acked.new", O_CREAT | O_TRUNC, &file);
	if (!err)
		return renameat(dir_fd, "acked.new", dir_fd, "acked") ||
				       fsync(dir_fd) ?
			       -errno :
			       0;
	unlinkat(dir_fd, "acked.new", 0);
	return err == -ENOSPC || err == -EDQUOT ?
		       write_file(dir_fd, "acked", 0, &file) :
		       err;
}

/* -ENOENT: nothing was ever acknowledged. */
static int read_progress(int dir_fd, struct spool_progress *ret_progress)
{
	struct acked_file file;
	cleanup_fd int fd = openat(dir_fd, "acked", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, &file, sizeof(file));
	if (n < 0)
		return -errno;
	if (n != sizeof(file) || file.crc != crc_of_acked(&file) ||
	    memcmp(file.magic, acked_magic, sizeof(acked_magic)))
		return -EBADMSG;
	*ret_progress = file.progress;
	return 0;
}

/* ---- Life ---------------------------------------------------------------------- */

/* A directory that is new shall outlive a crash. */
static int sync_parent(int dir_fd)
{
	cleanup_fd int fd =
		openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) ? -errno : 0;
}

static int open_files(struct spool_dir *dir, const char *path)
{
	bool is_new = !mkdir(path, 0700);
	int err;

	if (!is_new && errno != EEXIST)
		return -errno;
	dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	err = is_new ? sync_parent(dir->fd) : 0;
	if (err)
		return err;
	dir->lock_fd =
		openat(dir->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (dir->lock_fd < 0)
		return -errno;
	if (flock(dir->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

static int take_over(struct spool_dir *dir, const struct log *log,
		     const char *path, struct segment **ret_segments,
		     struct spool_progress *ret_progress)
{
	struct spool_progress progress = { 0 };
	bool is_known;
	int err = read_progress(dir->fd, &progress);

	if (err && err != -EBADMSG && err != -ENOENT)
		return err;
	is_known = err != -EBADMSG;
	if (err == -ENOENT) /* where there is room still; what fails is told later */
		spool_dir_write_progress(dir->fd, &progress);
	if (!is_known)
		log_error(log,
			  "spool %s: the file 'acked' is damaged: what was delivered may be sent again",
			  path);
	err = spool_dir_rename_back(dir->fd);
	err = err   ?:
		      spool_recover(dir->fd, path, log, progress.durable,
				    ret_segments);
	if (err)
		return err;
	if (!is_known && *ret_segments)
		progress.acked = (*ret_segments)->first;
	*ret_progress = progress;
	return 0;
}

int spool_dir_open(const char *path, const struct log *log,
		   struct spool_dir **ret_dir, struct segment **ret_segments,
		   struct spool_progress *ret_progress)
{
	struct spool_dir *dir = malloc(sizeof(*dir));
	int err;

	if (!dir)
		return -ENOMEM;
	*dir = (struct spool_dir){ .fd = -1, .lock_fd = -1 };
	err = open_files(dir, path);
	err = err ?: take_over(dir, log, path, ret_segments, ret_progress);
	if (err) {
		log_error(log, "cannot use %s as a spool: %s", path,
			  err == -EBUSY ? "another process has it" :
					  strerror(-err));
		spool_dir_close(dir);
		return err;
	}
	*ret_dir = dir;
	return 0;
}

void spool_dir_close(struct spool_dir *dir)
{
	if (!dir)
		return;
	close_fd(&dir->lock_fd);
	close_fd(&dir->fd);
	free(dir->forgotten);
	free(dir);
}

/* A name that is taken is of a segment that nobody needs any more. */
int spool_dir_attach(const struct spool_dir *dir, struct segment *segment)
{
	char name[SPOOL_NAME_SIZE];
	cleanup_fd int fd = -1;
	int err;

	spool_dir_name(segment->first.seq, name);
	unlinkat(dir->fd, name, 0);
	fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = segment_attach(segment, fd);
	if (err) {
		unlinkat(dir->fd, name, 0);
		return err;
	}
	TAKE_FD(fd);
	return 0;
}

int spool_dir_rename_again(int dir_fd, uint64_t first_seq)
{
	char name[SPOOL_NAME_SIZE], other[SPOOL_NAME_SIZE + 1];

	spool_dir_name(first_seq, name);
	snprintf(other, sizeof(other), "%s~", name);
	return renameat(dir_fd, name, dir_fd, other) ||
			       renameat(dir_fd, other, dir_fd, name) ?
		       -errno :
		       0;
}

static int is_renamed(const struct dirent *entry)
{
	return strlen(entry->d_name) == 21 &&
	       !strcmp(entry->d_name + 16, ".seg~");
}

int spool_dir_rename_back(int dir_fd)
{
	struct dirent **entries;
	int n = scandirat(dir_fd, ".", &entries, is_renamed, NULL), err = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char name[SPOOL_NAME_SIZE];

		snprintf(name, sizeof(name), "%.20s", entries[i]->d_name);
		if (renameat(dir_fd, entries[i]->d_name, dir_fd, name))
			err = -errno;
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* Without memory for it the file stays, and is acknowledged at the next start. */
void spool_dir_forget(struct spool_dir *dir, uint64_t first_seq)
{
	uint64_t *forgotten = reallocarray(dir->forgotten, dir->n_forgotten + 1,
					   sizeof(*forgotten));

	if (!forgotten)
		return;
	forgotten[dir->n_forgotten++] = first_seq;
	dir->forgotten = forgotten;
}

void spool_dir_remove(struct spool_dir *dir, uint64_t first_seq)
{
	char name[SPOOL_NAME_SIZE];

	spool_dir_name(first_seq, name);
	unlinkat(dir->fd, name, 0);
}
