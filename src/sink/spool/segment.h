/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A stretch of a spool's records: in memory, or in a file with what was not
 * written to it yet in memory. Records are only ever added at the end.
 *
 * In a file, a head comes first, then the records, each behind a head of its own.
 * Numbers are in the machine's byte order: a spool stays where it was made.
 */
#ifndef NETOBS_SINK_SPOOL_SEGMENT_H
#define NETOBS_SINK_SPOOL_SEGMENT_H

#include "sink/position.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEGMENT_RECORD_MAX = 60 << 10, /* bytes of a record */
	SEGMENT_BUFFER = 128 << 10,    /* written to the file when full */
	SEGMENT_FILE_MAX = 16 << 20,   /* bytes of a file's records */
	SEGMENT_WORD = 8,	       /* what records fill whole */
	SEGMENT_BLOCK = 4096, /* what a disk that fails loses at a time */
};

struct record_head {
	uint32_t crc; /* CRC-32C of what follows, to the last word's end */
	uint32_t len; /* of the record */
	struct position before;
	struct position own; /* .seq is 1 */
};

struct segment_head {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* CRC-32C of what follows */
	struct position first;
	int64_t made_ms;
};

struct segment {
	struct segment *next;
	struct position first, end; /* before the first record, behind the last */
	int64_t made_ms;	    /* of the spool's clock */
	int64_t made_at_ms;	    /* since 1970 */
	int64_t used_ms;	    /* when its last record came */
	uint64_t size;		    /* of all records, with their heads */
	int fd;		  /* -1: in memory, or it could not be made yet */
	uint64_t written; /* of size, those in the file */
	struct position in_file; /* behind these */
	uint64_t synced;	 /* of those, what a crash of the host leaves */
	struct position durable; /* behind those */
	bool is_in_doubt;   /* a sync failed: the rest is to be written again */
	bool is_named;	    /* a crash leaves the file's name */
	bool is_lost;	    /* another process removed it: copy it */
	bool is_closed;	    /* nothing is to be added */
	bool is_damaged;    /* not all in the file can be read */
	bool has_checksums; /* in memory it cannot change */
	char *buf;	    /* the rest */
	size_t buf_size;
};

/* In memory, with room for @capacity bytes. NULL: -ENOMEM. */
struct segment *segment_new(struct position first, int64_t made_ms,
			    size_t capacity);

/* Make one that was only in memory a new one. */
void segment_renew(struct segment *segment, struct position first,
		   int64_t made_ms);

/* Have it written to @fd, a new file, which becomes the segment's. */
int segment_attach(struct segment *segment, int fd);

/* What a file was found to hold. */
struct segment_found {
	struct segment_head head;
	int64_t used_ms; /* since 1970, when it was written last */
	uint64_t size;	 /* up to the end of its last record */
	struct position end;
	uint64_t synced; /* of size, what was known to be durable */
	struct position durable;
	bool is_damaged, is_closed; /* as in struct segment */
};

/* NULL: -ENOMEM. */
struct segment *segment_reopen(int fd, const struct segment_found *found);

/* Have a place for what is to be added, if there is none. */
int segment_resume(struct segment *segment);

/* Closes the file. */
void segment_free(struct segment *segment);

/* And those behind it. */
void segment_free_all(struct segment *segment);

/* -EBADMSG: not the head of a segment. Others: as pread(2). */
int segment_read_head(int fd, struct segment_head *ret_head);

/* Errors: as pwrite(2). */
int segment_write_head(int fd, struct position first, int64_t made_ms);

/* What a record takes: it fills whole words. */
static inline uint64_t segment_cost(size_t len)
{
	return sizeof(struct record_head) +
	       (len + SEGMENT_WORD - 1) / SEGMENT_WORD * SEGMENT_WORD;
}

/**
 * Room for a record of at most @len bytes, to be filled and then added by
 * segment_commit(); until then the segment has none.
 *
 * @return 0; -ENOBUFS: no more room in memory; others: as write(2), of what is in the
 *         buffer, which stays and may be written another time
 */
int segment_reserve(struct segment *segment, size_t len, struct position own,
		    void **ret_record);

/* @len: of the record. */
void segment_commit(struct segment *segment, size_t len);

/* Write what is in the buffer. Errors: as write(2). */
int segment_write_out(struct segment *segment);

/*
 * Write again what lies between two offsets of a file, with its head: after a sync
 * that failed, the kernel takes it for written (fsync(2)), but mostly still has it.
 * @is_damaged: records that are not whole are known to be there, and left out.
 * -EBADMSG: not all of it. Others: as pread(2), pwrite(2).
 */
int segment_rewrite(int fd, uint64_t from, uint64_t to, bool is_damaged);

/* The head of a file, and @size bytes of records. Errors: as pread(2), pwrite(2). */
int segment_copy(int from_fd, int to_fd, uint64_t size);

/* What a reader of files keeps of them. */
struct segment_window {
	char *buf; /* SEGMENT_BUFFER bytes; NULL at first */
	const struct segment *segment;
	uint64_t start;
	size_t len;
};

void segment_window_free(struct segment_window *window);

/* Behind the last record. */
static inline struct record_head *segment_tail(const struct segment *segment)
{
	return (void *)(segment->buf + (segment->size - segment->written));
}

/* segment_read() of what is in the file. */
int segment_read_file(const struct segment *segment,
		      struct segment_window *window, uint64_t offset,
		      const struct record_head **ret_head);

/*
 * The record at @offset, which is below size, begins behind its head; valid until the
 * next call. -EBADMSG: it is damaged. Others: as pread(2).
 */
static inline int segment_read(const struct segment *segment,
			       struct segment_window *window, uint64_t offset,
			       const struct record_head **ret_head)
{
	if (offset < segment->written)
		return segment_read_file(segment, window, offset, ret_head);
	*ret_head = (const void *)(segment->buf + (offset - segment->written));
	return 0;
}

#endif
