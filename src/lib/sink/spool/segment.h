/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A segment of a spool: records in memory, or in a file except for those that are not
 * written to it yet. Records are only added at the end.
 *
 * A file begins with a head; each record follows a head of its own. Numbers are in the
 * machine's byte order: a spool stays where it was made.
 */
#ifndef NETOBS_SINK_SPOOL_SEGMENT_H
#define NETOBS_SINK_SPOOL_SEGMENT_H

#include "position.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEGMENT_RECORD_MAX = 60 << 10, /* bytes of a record */
	SEGMENT_BUFFER = 128 << 10,    /* written to the file when full */
	SEGMENT_FILE_MAX = 16 << 20,   /* bytes of a file's records */
	SEGMENT_WORD = 8,     /* the length of a record is rounded up to it */
	SEGMENT_BLOCK = 4096, /* bytes that one error of a disk makes unreadable */
};

struct segment_window;

struct record_head {
	uint32_t crc; /* CRC-32C of all that follows, with the padding */
	uint32_t len; /* length of the record */
	struct position before;
	struct position own; /* .seq is 1 */
};

struct segment_head {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* CRC-32C of all that follows */
	struct position first;
	int64_t made_ms;
};

struct segment {
	struct segment *next;
	struct position first, end; /* before the first record, behind the last */
	int64_t made_ms;	    /* when it was made, by the spool's clock */
	int64_t made_at_ms;	    /* since 1970 */
	int64_t used_ms;	    /* when its last record was added */
	uint64_t size;		    /* bytes of all records, with their heads */
	int fd;		  /* -1: in memory, or the file could not be made yet */
	uint64_t written; /* bytes of `size` that are in the file */
	struct position in_file; /* behind these */
	uint64_t synced; /* bytes of `written` for which the last sync succeeded */
	struct position durable; /* behind those that survive a crash of the host */
	bool is_in_doubt; /* a sync failed: bytes behind `durable` may not be on the disk */
	bool is_named;	    /* the file's name survives a crash */
	bool is_closed;	    /* no more records are added */
	bool is_damaged;    /* a part of the file cannot be read */
	bool has_checksums; /* false in memory */
	char *buf;	    /* bytes of `size` that are not in the file */
	size_t buf_size;
};

/** @return a segment in memory with room for @capacity bytes; NULL: no memory */
struct segment *segment_new(struct position first, int64_t made_ms,
			    size_t capacity);

/* Empty a segment that was in memory only, to use it again. */
void segment_renew(struct segment *segment, struct position first,
		   int64_t made_ms);

/* Write it to @fd, a new file, which becomes the segment's. */
int segment_attach(struct segment *segment, int fd);

/* Make a buffer for new records, if the segment has none. */
int segment_resume(struct segment *segment);

/* Closes the file. */
void segment_free(struct segment *segment);

/* Free all segments of a list, and close their files. */
void segment_free_all(struct segment *segment);

/** @return 0; -EBADMSG: it is not the head of a segment; others: as pread(2) */
int segment_read_head(int fd, struct segment_head *ret_head);

/* Errors: as pwrite(2). */
int segment_write_head(int fd, struct position first, int64_t made_ms);

/** @return bytes that a record takes, with its head and padding */
static inline uint64_t segment_cost(size_t len)
{
	return sizeof(struct record_head) +
	       (len + SEGMENT_WORD - 1) / SEGMENT_WORD * SEGMENT_WORD;
}

/**
 * Reserve room for a record of at most @len bytes, which segment_commit() adds once it is
 * filled.
 *
 * @return 0; -ENOBUFS: no more room in memory; others: as write(2) of the buffer, which
 *         stays and may be written later
 */
int segment_reserve(struct segment *segment, size_t len, struct position own,
		    void **ret_record);

/* @len: of the record. */
void segment_commit(struct segment *segment, size_t len);

/* Write the buffer to the file. Errors: as write(2). */
int segment_write_out(struct segment *segment);

/* The part of a file that its reader has in memory. */
struct segment_window {
	char *buf; /* SEGMENT_BUFFER bytes; NULL at first */
	const struct segment *segment;
	uint64_t start;
	size_t len;
};

void segment_window_free(struct segment_window *window);

/* @return the end of the last record */
static inline struct record_head *segment_tail(const struct segment *segment)
{
	return (void *)(segment->buf + (segment->size - segment->written));
}

/* segment_read() for records in the file. */
int segment_read_file(const struct segment *segment,
		      struct segment_window *window, uint64_t offset,
		      const struct record_head **ret_head);

/**
 * Read the record at @offset, which is below size.
 *
 * @param ret_head  the record follows; valid until the next call
 * @return 0; -EBADMSG: it is damaged; others: as pread(2)
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
