// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_dir.h"

#include "crc32c.h"
#include "util.h"
#include "spool_recover.h"

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
	struct mark mark;
	uint32_t crc; /* CRC-32C of what precedes */
	uint32_t reserved;
};

static const char acked_magic[8] = "netobsAK";

void spool_dir_name(uint64_t first_seq, char name[SPOOL_NAME_SIZE])
{
	snprintf(name, SPOOL_NAME_SIZE, "%016" PRIx64 ".seg", first_seq);
}

/* ---- What is acknowledged ------------------------------------------------------ */

static uint32_t crc_of_acked(const struct acked_file *file)
{
	return crc32c(0, file, offsetof(struct acked_file, crc));
}

int spool_dir_write_acked(int dir_fd, struct mark acked)
{
	struct acked_file file = { .mark = acked };
	cleanup_fd int fd = openat(dir_fd, "acked.new",
				   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				   0600);

	if (fd < 0)
		return -errno;
	memcpy(file.magic, acked_magic, sizeof(acked_magic));
	file.crc = crc_of_acked(&file);
	errno = EIO; /* of a short write */
	if (write(fd, &file, sizeof(file)) != sizeof(file) || fdatasync(fd) ||
	    renameat(dir_fd, "acked.new", dir_fd, "acked") || fsync(dir_fd))
		return -errno;
	return 0;
}

/* None: nothing was ever acknowledged. */
static int read_acked(int dir_fd, struct mark *ret_acked)
{
	struct acked_file file;
	cleanup_fd int fd = openat(dir_fd, "acked", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = read(fd, &file, sizeof(file));
	if (n < 0)
		return -errno;
	if (n != sizeof(file) || file.crc != crc_of_acked(&file) ||
	    memcmp(file.magic, acked_magic, sizeof(acked_magic)))
		return -EBADMSG;
	*ret_acked = file.mark;
	return 0;
}

/* ---- Life ---------------------------------------------------------------------- */

static int open_files(struct spool_dir *dir, const char *path)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
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
		     struct mark *ret_acked)
{
	struct mark acked = { 0 };
	bool is_known;
	int err = read_acked(dir->fd, &acked);

	if (err && err != -EBADMSG)
		return err;
	is_known = !err;
	if (err)
		log_error(log,
			  "spool %s: the file 'acked' is damaged: what was delivered may be sent again",
			  path);
	err = spool_recover(dir->fd, path, log, ret_segments);
	if (err)
		return err;
	if (!is_known && *ret_segments)
		acked = (*ret_segments)->first;
	*ret_acked = acked;
	return 0;
}

int spool_dir_open(const char *path, const struct log *log,
		   struct spool_dir **ret_dir, struct segment **ret_segments,
		   struct mark *ret_acked)
{
	struct spool_dir *dir = malloc(sizeof(*dir));
	int err;

	if (!dir)
		return -ENOMEM;
	*dir = (struct spool_dir){ .fd = -1, .lock_fd = -1 };
	err = open_files(dir, path);
	err = err ?: take_over(dir, log, path, ret_segments, ret_acked);
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
int spool_dir_create(struct spool_dir *dir, struct mark first, int64_t now_ms,
		     struct segment **ret_segment)
{
	char name[SPOOL_NAME_SIZE];
	cleanup_fd int fd = -1;
	int err;

	spool_dir_name(first.seq, name);
	unlinkat(dir->fd, name, 0);
	fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = segment_create(fd, first, now_ms, ret_segment);
	if (err) {
		unlinkat(dir->fd, name, 0);
		return err;
	}
	TAKE_FD(fd);
	dir->is_changed = true;
	return 0;
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
