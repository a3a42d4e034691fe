// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The file of a spool's directory that says how far its records have got. */
#include "spool_dir.h"

#include "base/crc32c.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static int write_file(int dir_fd, const char *name, int flags,
		      const struct acked_file *file)
{
	cleanup_fd int fd = openat(
		dir_fd, name,
		O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);

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
	unlinkat(dir_fd, "acked.new", 0); /* that of a crash, or anything else */
	err = write_file(dir_fd, "acked.new", O_CREAT | O_EXCL, &file);
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

int spool_dir_read_progress(int dir_fd, struct spool_progress *ret_progress)
{
	struct acked_file file;
	cleanup_fd int fd = openat(dir_fd, "acked",
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					   O_NOCTTY | O_CLOEXEC);
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
