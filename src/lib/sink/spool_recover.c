// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_recover.h"

#include "util.h"
#include "spool_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct recovery {
	int dir_fd;
	const char *path;
	const struct log *log;
	struct mark durable;
};

/* All of a segment's file but its head. */
struct contents {
	char *bytes;
	size_t len;
};

static int read_contents(int fd, struct contents *ret_contents)
{
	struct stat stat;
	struct contents contents = { 0 };

	if (fstat(fd, &stat))
		return -errno;
	contents.len = (size_t)stat.st_size - sizeof(struct segment_head);
	contents.bytes = malloc(contents.len + 1);
	if (!contents.bytes)
		return -ENOMEM;
	for (size_t got = 0; got < contents.len;) {
		ssize_t n = pread(fd, contents.bytes + got, contents.len - got,
				  (off_t)(sizeof(struct segment_head) + got));

		if (n <= 0) {
			int err = n ? -errno : -EIO;

			free(contents.bytes);
			return err;
		}
		got += (size_t)n;
	}
	*ret_contents = contents;
	return 0;
}

/* The whole records in their order. */
static void count_whole(const struct contents *contents, struct mark durable,
			struct segment_found *found)
{
	const struct record_head *head;
	const void *record;
	size_t at = 0;

	found->end = found->durable = found->head.first;
	while (at < contents->len &&
	       !segment_parse(contents->bytes + at, contents->len - at, &head,
			      &record) &&
	       head->before.seq == found->end.seq) {
		found->end = mark_add(head->before, head->own);
		at += segment_cost(head->len);
		if (mark_is_before(durable, found->end))
			continue;
		found->synced = at;
		found->durable = found->end;
	}
	found->size = at;
}

/* Whether any record follows, so that the break is not where writing ended. */
static bool has_record_after(const struct contents *contents, size_t at)
{
	const struct record_head *head;
	const void *record;

	for (; at < contents->len; at += 8)
		if (!segment_parse(contents->bytes + at, contents->len - at,
				   &head, &record))
			return true;
	return false;
}

/* Keep what is to be cut off, under the segment's name and where it was. */
static int quarantine(const struct recovery *recovery, const char *name,
		      const char *bytes, size_t len, size_t at)
{
	char bad[2 * SPOOL_NAME_SIZE];
	cleanup_fd int fd = -1;

	snprintf(bad, sizeof(bad), "%.*s-%zu.bad", SPOOL_NAME_SIZE, name, at);
	fd = openat(recovery->dir_fd, bad,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	errno = EIO;
	if (write(fd, bytes, len) != (ssize_t)len || fdatasync(fd))
		return -errno;
	log_error(recovery->log,
		  "spool %s: %zu bytes of %s are damaged; they are in %s now",
		  recovery->path, len, name, bad);
	return 0;
}

static int cut(const struct recovery *recovery, int fd, const char *name,
	       const struct contents *contents, size_t at, bool is_last)
{
	int err = 0;

	if (at == contents->len)
		return 0;
	if (!is_last || has_record_after(contents, at))
		err = quarantine(recovery, name, contents->bytes + at,
				 contents->len - at, at);
	else
		log_info(recovery->log,
			 "spool %s: the last record of %s was not written to its end",
			 recovery->path, name);
	if (err)
		return err;
	if (ftruncate(fd, (off_t)(sizeof(struct segment_head) + at)) ||
	    fdatasync(fd))
		return -errno;
	return 0;
}

/* -EBADMSG: it has no head. */
static int recover_segment(const struct recovery *recovery, const char *name,
			   bool is_last, struct segment **ret_segment)
{
	cleanup_fd int fd = openat(recovery->dir_fd, name, O_RDWR | O_CLOEXEC);
	struct segment_found found = { 0 };
	struct contents contents = { 0 };
	int err;

	if (fd < 0)
		return -errno;
	err = segment_read_head(fd, &found.head);
	err = err ?: read_contents(fd, &contents);
	if (err)
		return err;
	count_whole(&contents, recovery->durable, &found);
	err = cut(recovery, fd, name, &contents, found.size, is_last);
	free(contents.bytes);
	if (err)
		return err;
	*ret_segment = segment_reopen(fd, &found);
	if (!*ret_segment)
		return -ENOMEM;
	TAKE_FD(fd);
	return 0;
}

/* A file that has no head, of which the last one may just not have got it yet. */
static int set_aside(const struct recovery *recovery, const char *name,
		     bool is_last)
{
	char bad[2 * SPOOL_NAME_SIZE];
	struct stat stat;

	if (is_last && !fstatat(recovery->dir_fd, name, &stat, 0) &&
	    (size_t)stat.st_size < sizeof(struct segment_head))
		return unlinkat(recovery->dir_fd, name, 0) ? -errno : 0;
	snprintf(bad, sizeof(bad), "%.*s.bad", SPOOL_NAME_SIZE, name);
	if (renameat(recovery->dir_fd, name, recovery->dir_fd, bad))
		return -errno;
	log_error(recovery->log, "spool %s: %s is no segment; it is %s now",
		  recovery->path, name, bad);
	return 0;
}

static int is_segment(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return strlen(name) == 20 && strspn(name, "0123456789abcdef") == 16 &&
	       !strcmp(name + 16, ".seg");
}

static int recover_all(const struct recovery *recovery, struct dirent **entries,
		       int n, struct segment **ret_segments)
{
	struct segment *first = NULL, **next = &first;
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		const char *name = entries[i]->d_name;

		err = recover_segment(recovery, name, i == n - 1, next);
		if (!err)
			next = &(*next)->next;
		else if (err == -EBADMSG)
			err = set_aside(recovery, name, i == n - 1);
	}
	if (!err)
		*ret_segments = first;
	while (err && first) {
		struct segment *segment = first;

		first = segment->next;
		segment_free(segment);
	}
	return err;
}

int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct mark durable, struct segment **ret_segments)
{
	const struct recovery recovery = { dir_fd, path, log, durable };
	struct dirent **entries;
	int n, err;

	n = scandirat(dir_fd, ".", &entries, is_segment, alphasort);
	if (n < 0)
		return -errno;
	err = recover_all(&recovery, entries, n, ret_segments);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return err;
}
