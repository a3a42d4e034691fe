// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void spool_dir_name(uint64_t first_seq, char name[SPOOL_NAME_SIZE])
{
	snprintf(name, SPOOL_NAME_SIZE, "%016" PRIx64 ".seg", first_seq);
}

/* ---- How far its records have got -------------------------------------------- */

struct acked_file {
	char magic[8];
	struct spool_progress progress;
	uint32_t crc; /* CRC-32C of what precedes */
	uint32_t reserved;
};

static const char acked_magic[8] = "netobsAK";

static uint32_t crc_of_acked(const struct acked_file *file)
{
	return crc32c(0, file, offsetof(struct acked_file, crc));
}

static int write_acked_file(int dir_fd, const char *name, int flags,
			    const struct acked_file *file)
{
	const char *why;
	cleanup_fd int fd = own_file_open(dir_fd, name, O_WRONLY | flags, &why);

	if (fd < 0)
		return fd;
	errno = EIO; /* after a short write */
	return write(fd, file, sizeof(*file)) != sizeof(*file) || fdatasync(fd) ?
		       -errno :
		       0;
}

/*
 * On a full disk the existing file is overwritten, since otherwise no segment could ever
 * be removed to make room. A crash during that write only repeats records.
 */
int spool_dir_write_progress(int dir_fd, const struct spool_progress *progress)
{
	struct acked_file file = { .progress = *progress };
	int err;

	memcpy(file.magic, acked_magic, sizeof(acked_magic));
	file.crc = crc_of_acked(&file);
	unlinkat(dir_fd, "acked.new", 0); /* a crash may have left it */
	err = write_acked_file(dir_fd, "acked.new", O_CREAT | O_EXCL, &file);
	if (!err)
		return renameat(dir_fd, "acked.new", dir_fd, "acked") ||
				       fsync(dir_fd) ?
			       -errno :
			       0;
	unlinkat(dir_fd, "acked.new", 0);
	return err == -ENOSPC || err == -EDQUOT ?
		       write_acked_file(dir_fd, "acked", 0, &file) :
		       err;
}

/*
 * -ENOENT: no record was ever acknowledged; -EBADMSG: the file is damaged; others: as
 * own_file_open(), read(2).
 */
static int read_progress(int dir_fd, struct spool_progress *ret_progress,
			 const char **ret_why)
{
	struct acked_file file;
	cleanup_fd int fd = own_file_open(dir_fd, "acked", O_RDONLY, ret_why);
	ssize_t n;

	if (fd < 0)
		return fd;
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

/* Make the name of a new directory durable. */
static int sync_parent(int dir_fd)
{
	cleanup_fd int fd =
		openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) ? -errno : 0;
}

/* NULL: its files are safe from others. */
static const char *find_danger(const struct stat *info)
{
	if (info->st_uid && info->st_uid != geteuid())
		return "it belongs to another user; use a directory of your own, or change its owner (chown)";
	if (info->st_mode & (S_IWGRP | S_IWOTH) && !(info->st_mode & S_ISVTX))
		return "other users can write to it; revoke that (chmod go-w)";
	return NULL;
}

/* -EPERM, -ELOOP: @ret_why says more. */
static int open_dir(const char *path, const char **ret_why, int *ret_fd)
{
	bool is_new = !mkdir(path, 0700);
	cleanup_fd int fd = -1;
	struct stat info;
	int err;

	if (!is_new && errno != EEXIST)
		return -errno;
	if (!lstat(path, &info) && S_ISLNK(info.st_mode)) {
		*ret_why = "it is a symbolic link; name the directory itself";
		return -ELOOP;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info))
		return -errno;
	*ret_why = find_danger(&info);
	if (*ret_why)
		return -EPERM;
	err = is_new ? sync_parent(fd) : 0;
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}

/* Rename a file that is not a spool's, such as a directory, out of the way. */
static void clear_way(const struct spool_dir *dir, const struct log *log,
		      const char *path, const char *name)
{
	struct stat info;
	const char *why;

	if (fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW))
		return;
	why = own_file_refusal(dir->fd, &info);
	if (why)
		spool_set_aside(dir->fd, path, log, name, why);
}

static int take_lock(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* No other user can open the file, and so none can lock it. */
static int lock_file(struct spool_dir *dir, const char **ret_why)
{
	const char *why;

	dir->lock_fd = own_file_open(dir->fd, "lock", O_RDWR | O_CREAT, &why);
	if (dir->lock_fd == -EPERM)
		*ret_why =
			"its file 'lock' is another user's, or others can write to it; remove that file";
	if (dir->lock_fd < 0)
		return dir->lock_fd;
	fchmod(dir->lock_fd, 0600);
	return take_lock(dir->lock_fd);
}

/*
 * The directory itself is locked, as a file in there may be removed; and a file, as not every file
 * system (NFS) can lock directories, and as other users can lock a directory that they can read: only
 * if they cannot, its lock is that of another process of ours. One lock has to do: a full disk has no
 * room for a file.
 */
static int lock_dir(struct spool_dir *dir, const struct stat *info,
		    const char **ret_why)
{
	const bool is_private = !(info->st_mode & (S_IRGRP | S_IROTH));
	int err = take_lock(dir->fd), file_err;

	if (err == -EBUSY && is_private)
		return err;
	file_err = lock_file(dir, ret_why);
	if (file_err == -EBUSY || file_err == -EMFILE || file_err == -ENFILE ||
	    file_err == -EPERM)
		return file_err;
	return err && file_err ? err : 0;
}

/* @log: NULL: files in the way stay there */
static int open_files(struct spool_dir *dir, const char *path,
		      const struct log *log, const char **ret_why)
{
	struct stat info;
	int err = open_dir(path, ret_why, &dir->fd);

	if (err)
		return err;
	if (fstat(dir->fd, &info))
		return -errno;
	clear_way(dir, log, path, "lock");
	return lock_dir(dir, &info, ret_why);
}

/* Find the progress. False: it is unknown which records were acknowledged. */
static bool find_progress(struct spool_dir *dir, const struct log *log,
			  const char *path, struct spool_progress *progress)
{
	const char *why = NULL;
	int err;

	clear_way(dir, log, path, "acked");
	clear_way(dir, log, path, "acked.new");
	err = read_progress(dir->fd, progress, &why);
	if (!err)
		return true;
	if (err == -ENOENT) {
		/* Write it while there is still room; errors are logged later. */
		spool_dir_write_progress(dir->fd, progress);
		return true;
	}
	log_error(log,
		  "spool %s: the file 'acked' cannot be read: %s: delivered records may be sent again",
		  path,
		  why		  ? why :
		  err == -EBADMSG ? "it is damaged" :
				    strerror(-err));
	return false;
}

static int take_over(struct spool_dir *dir, const struct log *log,
		     const char *path, struct segment **ret_segments,
		     struct spool_progress *ret_progress)
{
	struct spool_progress progress = { 0 };
	bool is_known = find_progress(dir, log, path, &progress);
	int err;

	err = spool_recover(dir->fd, path, log, progress.durable, ret_segments);
	if (err)
		return err;
	if (!is_known && *ret_segments)
		progress.acked = (*ret_segments)->first;
	*ret_progress = progress;
	return 0;
}

static void log_refusal(const struct log *log, const char *path, int err,
			const char *why)
{
	if (!why)
		why = err == -EBUSY ? "another process has it" : strerror(-err);
	log_error(log, "cannot use %s as a spool: %s", path, why);
}

int spool_dir_open(const char *path, const struct log *log,
		   struct spool_dir **ret_dir, struct segment **ret_segments,
		   struct spool_progress *ret_progress)
{
	struct spool_dir *dir = malloc(sizeof(*dir));
	const char *why = NULL;
	int err;

	if (!dir)
		return -ENOMEM;
	*dir = (struct spool_dir){ .fd = -1, .lock_fd = -1 };
	err = io_make_parents(path);
	err = err ?: open_files(dir, path, log, &why);
	err = err ?: take_over(dir, log, path, ret_segments, ret_progress);
	if (err) {
		log_refusal(log, path, err, why);
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

/* If the name is taken, its segment is not needed any more. */
int spool_dir_attach(const struct spool_dir *dir, struct segment *segment)
{
	char name[SPOOL_NAME_SIZE];
	cleanup_fd int fd = -1;
	int err;

	spool_dir_name(segment->first.seq, name);
	unlinkat(dir->fd, name, 0);
	fd = openat(dir->fd, name,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
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
