/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Files and descriptors. */
#ifndef NETOBS_BASE_IO_H
#define NETOBS_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Files: reading and writing all, the directories on a path, a line that is secret. */

/*
 * Write @bytes from *@at on, which is advanced by the bytes written, also on failure.
 * @return 0 once all @len bytes are written, or as write(2), but for -EINTR
 */
int io_write(int fd, const void *bytes, size_t len, size_t *at);

/*
 * Make the directories that lead to @path, with mode 0750, as far as they are missing;
 * but none in the root directory, where one is missing only by a typing error.
 * Errors: as mkdir(2).
 */
int io_make_parents(const char *path);

/**
 * Read a file whole.
 *
 * @param flags     of open(2), beside O_RDONLY
 * @param ret_text  its @ret_len bytes, and a NUL; the caller's
 * @return 0; -EFBIG: it has more than @max bytes; -ENOMEM; others: as open(2) and read(2)
 */
int io_read_file(const char *path, int flags, size_t max, char **ret_text,
		 size_t *ret_len);

/** Read a file of /proc/PID, as far as there is room, without its last newline. "": it is gone */
void io_read_proc(uint32_t pid, const char *name, char *text, size_t size);

/**
 * Read the first line of a file: a password or a token, which a command line would show.
 *
 * @param text  erase it after use: explicit_bzero()
 * @return 0; -ENODATA: the line is empty; -ENAMETOOLONG: it is longer than @size; others: as
 *         open(2)
 */
int io_read_password(const char *path, char *text, size_t size);

/*
 * Files that netobs has made, and trusts when it reads them again. In a sticky directory such as
 * /tmp, any user can make a file of any name.
 */

/*
 * Check that the file belongs to root, to this user, or to the owner of the directory @dir_fd, who
 * could replace it.
 *
 * @return NULL; else what is wrong, to be put behind its name
 */
const char *own_file_refusal(int dir_fd, const struct stat *info);

/**
 * openat(2) of such a file, which no other user can write to. New files are for this user alone.
 *
 * @param flags    beside those that keep it from following links and from waiting
 * @param ret_why  with -EPERM: what is wrong; else unchanged
 * @return a descriptor, or -errno
 */
int own_file_open(int dir_fd, const char *name, int flags, const char **ret_why);

/* A file descriptor that a context and its threads share; the last closes it. */

struct shared_fd;

/* Takes @fd over, also on failure. NULL: no memory. */
struct shared_fd *shared_fd_new(int fd);

/* Close @fd with it; -1: nothing. Before others have a reference. */
void shared_fd_put_beside(struct shared_fd *shared, int fd);

/* -1: nothing; also of NULL. */
int shared_fd_beside(const struct shared_fd *shared);

/* Take another reference; NULL is fine. */
struct shared_fd *shared_fd_ref(struct shared_fd *shared);

/* Give a reference back; NULL is fine. */
void shared_fd_unref(struct shared_fd *shared);

/* -1 of NULL. */
int shared_fd_get(const struct shared_fd *shared);

#endif
