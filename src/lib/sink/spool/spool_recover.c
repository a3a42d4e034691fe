// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool.h"

#include "base/io.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNREADABLE_MAX = 256 }; /* blocks of a file; each may take seconds */

struct recovery {
	int dir_fd;
	const char *path;
	const struct log *log;
	struct position durable;
	struct segment_window window;

	/* The file that is looked at. */
	const char *name;
	uint64_t seq;		 /* first record number, by its name */
	unsigned int unreadable; /* blocks */
	struct segment *segment; /* `written`: all that it has; NULL: none is in it */
};

/* ---- Files that cannot be used --------------------------------------------------- */

void spool_set_aside(int dir_fd, const char *path, const struct log *log,
		     const char *name, const char *is)
{
	char bad[2 * SPOOL_NAME_SIZE];

	snprintf(bad, sizeof(bad), "%.*s.bad", SPOOL_NAME_SIZE, name);
	if (!renameat(dir_fd, name, dir_fd, bad))
		log_error(log, "spool %s: %s %s; it is %s now", path, name, is,
			  bad);
	else
		log_error(log, "spool %s: %s %s; it is left out", path, name, is);
}

static void set_aside(struct recovery *recovery, const char *is)
{
	segment_free(TAKE_PTR(recovery->segment));
	spool_set_aside(recovery->dir_fd, recovery->path, recovery->log,
			recovery->name, is);
}

/* Remove a segment that never had a durable record. */
static void remove_empty(struct recovery *recovery)
{
	segment_free(TAKE_PTR(recovery->segment));
	unlinkat(recovery->dir_fd, recovery->name, 0);
}

/* @return whether an error is not one of this file, so that the next would have it, too */
static bool is_of_process(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
	       err == -EROFS;
}

/* ---- Records --------------------------------------------------------------------- */

/*
 * Find the next record from *@at on, in a file that may be damaged anywhere. -ENOENT: there is
 * none; -EIO: too much of the file cannot be read.
 */
static int find_record(struct recovery *recovery, uint64_t *at,
		       const struct record_head **ret_head)
{
	while (*at < recovery->segment->written) {
		uint64_t place = sizeof(struct segment_head) + *at;
		int err = segment_read(recovery->segment, &recovery->window,
				       *at, ret_head);

		if (!err)
			return 0;
		if (err == -EBADMSG) {
			*at += SEGMENT_WORD;
			continue;
		}
		if (++recovery->unreadable > UNREADABLE_MAX)
			return -EIO;
		*at += SEGMENT_BLOCK - place % SEGMENT_BLOCK;
	}
	return -ENOENT;
}

static void take_record(const struct recovery *recovery,
			const struct record_head *head, uint64_t end_at)
{
	struct segment *segment = recovery->segment;

	segment->is_damaged |= head->before.seq != segment->end.seq;
	if (position_is_before(head->before, segment->end))
		return; /* the record does not belong here */
	segment->end = position_add(head->before, head->own);
	segment->size = end_at;
	if (position_is_before(recovery->durable, segment->end))
		return;
	segment->synced = end_at;
	segment->durable = segment->end;
}

/* Read all records of a file, up to the last whole one. */
static void read_through(struct recovery *recovery)
{
	struct segment *segment = recovery->segment;
	const struct record_head *head;
	uint64_t at = 0;
	int err;

	segment->end = segment->durable = segment->first;
	while (!(err = find_record(recovery, &at, &head))) {
		at += segment_cost(head->len);
		take_record(recovery, head, at);
	}
	if (err == -EIO) { /* the reader may find more some day */
		segment->size = segment->written;
		segment->is_closed = true;
		if (position_is_before(segment->end, recovery->durable))
			segment->end = recovery->durable;
	}
	if (recovery->unreadable || segment->is_damaged)
		log_error(recovery->log,
			  "spool %s: %s is damaged: records there are dropped, the others sent",
			  recovery->path, recovery->name);
}

/* ---- Heads ----------------------------------------------------------------------- */

/* Rebuild the head from the records. -ENOENT: there are no records. */
static int restore_head(struct recovery *recovery, struct segment_head *head)
{
	const struct record_head *record;
	uint64_t at = 0;
	int err = find_record(recovery, &at, &record);

	if (err || record->before.seq < recovery->seq)
		return -ENOENT;
	head->first = record->before;
	head->first.seq = recovery->seq;
	head->made_ms = recovery->segment->used_ms;
	log_error(recovery->log,
		  "spool %s: the head of %s was damaged; its records are intact",
		  recovery->path, recovery->name);
	segment_write_head(recovery->segment->fd, head->first, head->made_ms);
	return 0;
}

static int read_head(struct recovery *recovery)
{
	struct segment *segment = recovery->segment;
	struct segment_head head;
	int err = segment_read_head(segment->fd, &head);

	if (err || head.first.seq != recovery->seq)
		err = restore_head(recovery, &head);
	if (err)
		return err;
	segment->first = head.first;
	segment->made_ms = head.made_ms;
	return 0;
}

/* Make no segment where none can be in the file. */
static int open_file(struct recovery *recovery)
{
	const char *why = NULL;
	struct segment *segment;
	struct stat info;
	cleanup_fd int fd =
		own_file_open(recovery->dir_fd, recovery->name, O_RDWR, &why);

	if (fd < 0 && is_of_process(fd))
		return fd;
	if (fd < 0 || fstat(fd, &info)) {
		set_aside(recovery, why ?: strerror(fd < 0 ? -fd : errno));
		return 0;
	}
	segment = recovery->segment = calloc(1, sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	segment->fd = TAKE_FD(fd);
	segment->has_checksums = true;
	segment->used_ms = info.st_mtim.tv_sec * 1000LL +
			   info.st_mtim.tv_nsec / NSEC_PER_MSEC;
	if ((size_t)info.st_size > sizeof(struct segment_head))
		segment->written = min_u64((uint64_t)info.st_size -
						   sizeof(struct segment_head),
					   SEGMENT_FILE_MAX) /
				   SEGMENT_WORD * SEGMENT_WORD;
	return 0;
}

static int look_at(struct recovery *recovery)
{
	int err = open_file(recovery);
	bool is_empty;

	if (err || !recovery->segment)
		return err;
	is_empty = recovery->segment->written < sizeof(struct record_head);
	if (!is_empty && !read_head(recovery))
		return 0;
	if (is_empty ||
	    (recovery->seq >= recovery->durable.seq && !recovery->unreadable))
		remove_empty(recovery);
	else
		set_aside(recovery, "is no segment");
	return 0;
}

/* ---- Segments -------------------------------------------------------------------- */

/* If the file cannot be cut, nothing more is added to it. */
static void cut_last(const struct recovery *recovery)
{
	struct segment *segment = recovery->segment;

	if (segment->size == segment->written)
		return;
	log_info(recovery->log,
		 "spool %s: the last record of %s is incomplete and cut off",
		 recovery->path, recovery->name);
	if (ftruncate(segment->fd,
		      (off_t)(sizeof(struct segment_head) + segment->size)))
		segment->is_closed = true;
}

/* @next: position of the first record of the next segment; NULL: there is no next segment. */
static void measure(struct recovery *recovery, const struct position *next)
{
	struct segment *segment = recovery->segment;

	if (next && !position_is_before(recovery->durable, *next)) {
		segment->size = segment->synced = segment->written;
		segment->end = segment->durable = *next;
		return;
	}
	read_through(recovery);
	if (!next && segment->size)
		cut_last(recovery);
	if (!next)
		return;
	segment->end = *next;
	if (position_is_before(segment->end, segment->durable))
		segment->durable = segment->end;
}

/* Dismiss a segment without any record. */
static void dismiss(struct recovery *recovery)
{
	if (position_is_before(recovery->segment->first, recovery->durable))
		set_aside(recovery, "contains no complete record");
	else
		remove_empty(recovery);
}

/* Put the file's segment in front of those behind it, as it ends where the next one begins. */
static int recover_file(struct recovery *recovery, const char *name,
			struct segment **segments)
{
	struct segment *segment;
	int err;

	recovery->name = name;
	recovery->seq = strtoull(name, NULL, 16);
	recovery->unreadable = 0;
	recovery->window.segment = NULL;
	err = look_at(recovery);
	segment = recovery->segment;
	if (err || !segment)
		return err;
	measure(recovery, *segments ? &(*segments)->first : NULL);
	if (!segment->size) {
		dismiss(recovery);
		return 0;
	}
	segment->written = segment->size;
	segment->in_file = segment->end;
	segment->is_in_doubt = segment->synced < segment->size;
	segment->is_named = segment->synced;
	segment->is_closed |= segment->is_in_doubt;
	segment->next = *segments;
	*segments = TAKE_PTR(recovery->segment);
	return 0;
}

static int is_segment(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return strlen(name) == 20 && strspn(name, "0123456789abcdef") == 16 &&
	       !strcmp(name + 16, ".seg");
}

int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct position durable, struct segment **ret_segments)
{
	struct recovery recovery = {
		.dir_fd = dir_fd, .path = path, .log = log, .durable = durable
	};
	struct segment *segments = NULL;
	struct dirent **entries;
	int n, err = 0;

	n = scandirat(dir_fd, ".", &entries, is_segment, alphasort);
	if (n < 0)
		return -errno;
	while (n--) {
		err = err ?: recover_file(&recovery, entries[n]->d_name, &segments);
		free(entries[n]);
	}
	free(entries);
	segment_window_free(&recovery.window);
	if (!err) {
		*ret_segments = segments;
		return 0;
	}
	segment_free(recovery.segment);
	segment_free_all(segments);
	return err;
}
