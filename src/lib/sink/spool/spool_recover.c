// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_dir.h"

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
};

/* A file that may be a segment. */
struct candidate {
	char name[SPOOL_NAME_SIZE];
	uint64_t seq;	      /* first record number, by the name of the file */
	struct segment probe; /* for segment_read(): all that the file has */
	unsigned int unreadable; /* blocks */
	struct segment_found found;
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

static void set_aside(const struct recovery *recovery,
		      struct candidate *candidate, const char *is)
{
	close_fd(&candidate->probe.fd);
	spool_set_aside(recovery->dir_fd, recovery->path, recovery->log,
			candidate->name, is);
}

/* Remove a segment that never had a durable record. */
static void remove_empty(const struct recovery *recovery,
			 struct candidate *candidate)
{
	close_fd(&candidate->probe.fd);
	unlinkat(recovery->dir_fd, candidate->name, 0);
}

/* Whether an error is not one of this file, so that the next would have it, too. */
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
static int find_record(struct recovery *recovery, struct candidate *candidate,
		       uint64_t *at, const struct record_head **ret_head)
{
	while (*at < candidate->probe.size) {
		uint64_t place = sizeof(struct segment_head) + *at;
		int err = segment_read(&candidate->probe, &recovery->window,
				       *at, ret_head);

		if (!err)
			return 0;
		if (err == -EBADMSG) {
			*at += SEGMENT_WORD;
			continue;
		}
		if (++candidate->unreadable > UNREADABLE_MAX)
			return -EIO;
		*at += SEGMENT_BLOCK - place % SEGMENT_BLOCK;
	}
	return -ENOENT;
}

static void take_record(const struct recovery *recovery,
			const struct record_head *head, uint64_t end_at,
			struct segment_found *found)
{
	found->is_damaged |= head->before.seq != found->end.seq;
	if (position_is_before(head->before, found->end))
		return; /* the record does not belong here */
	found->end = position_add(head->before, head->own);
	found->size = end_at;
	if (position_is_before(recovery->durable, found->end))
		return;
	found->synced = end_at;
	found->durable = found->end;
}

/* Read all records of a file, up to the last whole one. */
static void read_through(struct recovery *recovery, struct candidate *candidate)
{
	struct segment_found *found = &candidate->found;
	const struct record_head *head;
	uint64_t at = 0;
	int err;

	found->end = found->durable = found->head.first;
	while (!(err = find_record(recovery, candidate, &at, &head))) {
		at += segment_cost(head->len);
		take_record(recovery, head, at, found);
	}
	if (err == -EIO) { /* the reader may find more some day */
		found->size = candidate->probe.size;
		found->is_closed = true;
		if (position_is_before(found->end, recovery->durable))
			found->end = recovery->durable;
	}
	if (candidate->unreadable || found->is_damaged)
		log_error(recovery->log,
			  "spool %s: %s is damaged: records there are dropped, the others sent",
			  recovery->path, candidate->name);
}

/* ---- Heads ----------------------------------------------------------------------- */

/* Rebuild the head from the records. -ENOENT: there are no records. */
static int restore_head(struct recovery *recovery, struct candidate *candidate)
{
	struct segment_head *head = &candidate->found.head;
	const struct record_head *record;
	uint64_t at = 0;
	int err = find_record(recovery, candidate, &at, &record);

	if (err || record->before.seq < candidate->seq)
		return -ENOENT;
	head->first = record->before;
	head->first.seq = candidate->seq;
	head->made_ms = candidate->found.used_ms;
	log_error(recovery->log,
		  "spool %s: the head of %s was damaged; its records are intact",
		  recovery->path, candidate->name);
	segment_write_head(candidate->probe.fd, head->first, head->made_ms);
	return 0;
}

static int read_head(struct recovery *recovery, struct candidate *candidate)
{
	int err = segment_read_head(candidate->probe.fd, &candidate->found.head);

	if (!err && candidate->found.head.first.seq == candidate->seq)
		return 0;
	return restore_head(recovery, candidate);
}

/* NULL: it is a file that a segment may be in. */
/* 0: look at candidate->probe.fd; it is -1 where there is no segment. */
static int open_candidate(const struct recovery *recovery,
			  struct candidate *candidate)
{
	struct segment *probe = &candidate->probe;
	const char *why = NULL;
	struct stat info;
	int fd = own_file_open(recovery->dir_fd, candidate->name, O_RDWR, &why);

	if (fd < 0 && is_of_process(fd))
		return fd;
	if (fd < 0 || fstat(fd, &info)) {
		set_aside(recovery, candidate,
			  why ? why : strerror(fd < 0 ? -fd : errno));
		close_fd(&fd);
		return 0;
	}
	probe->fd = fd;
	candidate->found.used_ms = info.st_mtim.tv_sec * 1000LL +
				   info.st_mtim.tv_nsec / NSEC_PER_MSEC;
	if ((size_t)info.st_size > sizeof(struct segment_head))
		probe->size = min_u64((uint64_t)info.st_size -
					      sizeof(struct segment_head),
				      SEGMENT_FILE_MAX) /
			      SEGMENT_WORD * SEGMENT_WORD;
	probe->written = probe->size;
	return 0;
}

static int look_at(struct recovery *recovery, struct candidate *candidate)
{
	int err = open_candidate(recovery, candidate);
	bool is_empty;

	if (err || candidate->probe.fd < 0)
		return err;
	is_empty = candidate->probe.size < sizeof(struct record_head);
	if (!is_empty && !read_head(recovery, candidate))
		return 0;
	if (is_empty ||
	    (candidate->seq >= recovery->durable.seq && !candidate->unreadable))
		remove_empty(recovery, candidate);
	else
		set_aside(recovery, candidate, "is no segment");
	return 0;
}

/* ---- Segments -------------------------------------------------------------------- */

/* If the file cannot be cut, nothing more is added to it. */
static void cut_candidate(const struct recovery *recovery,
			  struct candidate *candidate)
{
	struct segment_found *found = &candidate->found;

	if (found->size == candidate->probe.size)
		return;
	log_info(recovery->log,
		 "spool %s: the last record of %s is incomplete and cut off",
		 recovery->path, candidate->name);
	if (ftruncate(candidate->probe.fd,
		      (off_t)(sizeof(struct segment_head) + found->size)))
		found->is_closed = true;
}

/* @next: position of the first record of the next segment; NULL: there is no next segment. */
static void measure_candidate(struct recovery *recovery,
			      struct candidate *candidate,
			      const struct position *next)
{
	struct segment_found *found = &candidate->found;

	if (next && !position_is_before(recovery->durable, *next)) {
		found->size = found->synced = candidate->probe.size;
		found->end = found->durable = *next;
		return;
	}
	read_through(recovery, candidate);
	if (!next && found->size)
		cut_candidate(recovery, candidate);
	if (!next)
		return;
	found->end = *next;
	if (position_is_before(found->end, found->durable))
		found->durable = found->end;
}

/* Dismiss a segment without any record. */
static void dismiss_candidate(const struct recovery *recovery,
			      struct candidate *candidate)
{
	if (position_is_before(candidate->found.head.first, recovery->durable))
		set_aside(recovery, candidate, "contains no complete record");
	else
		remove_empty(recovery, candidate);
}

/* Link segments from the last to the first, as each ends where the next one begins. */
static int link_all(struct recovery *recovery, struct candidate *candidates,
		    int n, struct segment **ret_segments)
{
	struct segment *segments = NULL;

	while (n--) {
		struct candidate *candidate = &candidates[n];
		struct segment *segment;

		if (candidate->probe.fd < 0)
			continue;
		measure_candidate(recovery, candidate,
				  segments ? &segments->first : NULL);
		if (!candidate->found.size) {
			dismiss_candidate(recovery, candidate);
			continue;
		}
		segment = segment_reopen(candidate->probe.fd, &candidate->found);
		if (!segment) {
			segment_free_all(segments);
			return -ENOMEM;
		}
		TAKE_FD(candidate->probe.fd);
		segment->next = segments;
		segments = segment;
	}
	*ret_segments = segments;
	return 0;
}

static int is_segment(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return strlen(name) == 20 && strspn(name, "0123456789abcdef") == 16 &&
	       !strcmp(name + 16, ".seg");
}

static int recover_all(struct recovery *recovery, struct dirent **entries,
		       int n, struct segment **ret_segments)
{
	struct candidate *candidates = calloc((size_t)n + 1, sizeof(*candidates));
	int err = candidates ? 0 : -ENOMEM;

	for (int i = 0; i < n && candidates; i++)
		candidates[i].probe.fd = -1;
	for (int i = 0; i < n && !err; i++) {
		struct candidate *candidate = &candidates[i];

		snprintf(candidate->name, sizeof(candidate->name), "%.20s",
			 entries[i]->d_name);
		candidate->seq = strtoull(candidate->name, NULL, 16);
		err = look_at(recovery, candidate);
	}
	err = err ?: link_all(recovery, candidates, n, ret_segments);
	for (int i = 0; i < n && candidates; i++)
		close_fd(&candidates[i].probe.fd);
	free(candidates);
	return err;
}

int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct position durable, struct segment **ret_segments)
{
	struct recovery recovery = {
		.dir_fd = dir_fd, .path = path, .log = log, .durable = durable
	};
	struct dirent **entries;
	int n, err;

	n = scandirat(dir_fd, ".", &entries, is_segment, alphasort);
	if (n < 0)
		return -errno;
	err = recover_all(&recovery, entries, n, ret_segments);
	segment_window_free(&recovery.window);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return err;
}
