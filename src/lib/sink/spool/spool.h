/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records on their way to a collector wait here, in memory or in a directory, within a
 * limit. Each record that was added is acknowledged by the reader, still here, or counted
 * as dropped.
 *
 * One thread uses a spool. It never waits for a disk, except for room in the kernel's page
 * cache: a short-lived thread syncs.
 */
#ifndef NETOBS_SINK_SPOOL_SPOOL_H
#define NETOBS_SINK_SPOOL_SPOOL_H

#include "base/log.h"
#include "base/outage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A place between two records of a spool, as the numbers of records, packets and bytes
 * before it. So the difference of two positions is what lies between them, also where the
 * records themselves are lost.
 */

struct position {
	uint64_t seq; /* records */
	uint64_t packets;
	uint64_t bytes;
};

static inline struct position position_add(struct position a, struct position b)
{
	return (struct position){ a.seq + b.seq, a.packets + b.packets,
				  a.bytes + b.bytes };
}

static inline struct position position_sub(struct position a, struct position b)
{
	return (struct position){ a.seq - b.seq, a.packets - b.packets,
				  a.bytes - b.bytes };
}

static inline bool position_is_before(struct position a, struct position b)
{
	return a.seq < b.seq;
}

/*
 * A segment of a spool: records in memory, or in a file except for those that are not
 * written to it yet. Records are only added at the end.
 *
 * A file begins with a head; each record follows a head of its own. Numbers are in the
 * machine's byte order: a spool stays where it was made.
 */

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

/* Like segment_read(), for records in the file. */
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

/*
 * The directory of a spool on disk, and what a crash may leave in it:
 *
 *   lock                   held by the process that uses it, with mode 0600, so that no other can
 *   acked                  how far its records have got: struct spool_progress
 *   0000000000001000.seg   the segment whose first record has that number (hex)
 *   *.bad                  files that could not be used, for people to look at
 *
 * A segment goes only when an acked file that is behind its end is durable.
 */

/* Positions behind the last acknowledged record, and behind the last durable one. */
struct spool_progress {
	struct position acked, durable;
};

struct spool_dir {
	int fd;
	int lock_fd;	     /* -1: only the directory itself is locked */
	uint64_t *forgotten; /* first numbers of segments that may go */
	size_t n_forgotten;
};

/**
 * Make a directory, or take over one with its segments, in order. Errors are logged.
 *
 * @return 0; -EBUSY: another process uses it; -EPERM: others could change its files;
 *         -ELOOP: it is a symbolic link
 */
int spool_dir_open(const char *path, const struct log *log,
		   struct spool_dir **ret_dir, struct segment **ret_segments,
		   struct spool_progress *ret_progress);

/* NULL is fine. */
void spool_dir_close(struct spool_dir *dir);

/* Make a segment's file. */
int spool_dir_attach(const struct spool_dir *dir, struct segment *segment);

/* Remove the file of a segment that is not needed any more, with the next sync. */
void spool_dir_forget(struct spool_dir *dir, uint64_t first_seq);

/* The name of a segment's file. */
enum { SPOOL_NAME_SIZE = 32 };
void spool_dir_name(uint64_t first_seq, char name[SPOOL_NAME_SIZE]);

/* Save it for the next start, durably. */
int spool_dir_write_progress(int dir_fd, const struct spool_progress *progress);

/* ---- What a crash has left: spool_recover.c ---------------------------------- */

/*
 * Open the segments, in order. A record that was torn when the process died is cut off the
 * last one. A file that is no segment, or cannot be used, is renamed to *.bad, or
 * else passed over. Only the last segment and those that are not before @durable are
 * read: what is damaged in others is found when they are sent. Nothing here needs
 * room on the disk, and memory for no more than a window of a file.
 *
 * Errors are those of the process or of the directory, such as -EMFILE.
 */
int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct position durable, struct segment **ret_segments);

/* Rename an unusable file to @name.bad, and log that it @is so. */
void spool_set_aside(int dir_fd, const char *path, const struct log *log,
		     const char *name, const char *is);

struct spool_options {
	const char *dir;       /* NULL: in memory */
	uint64_t max_bytes;    /* including the heads of records */
	int64_t max_age_ms;    /* 0: any */
	int64_t since_1970_ms; /* the zero of the spool's clock */
	const struct log *log;
};

/* Reasons why records were dropped. */
enum spool_drop {
	SPOOL_FULL,
	SPOOL_TOO_OLD,
	SPOOL_DAMAGED,	   /* damaged or missing on disk */
	SPOOL_UNWRITTEN,   /* no room on disk or in memory */
	SPOOL_REFUSED,	   /* the collector refused them permanently */
	SPOOL_UNSUPPORTED, /* records of a type that the sink cannot represent */
	SPOOL_DROPS,
};

/*
 * Records that were removed for lack of room after the reader got them, and before it
 * acknowledged them: it may still deliver them, but cannot read them again. They precede
 * all that is left, and nothing else is read until their outcome is known.
 */
struct spool_unacked {
	struct position from, to; /* equal if there are no records */
	enum spool_drop why;
};

struct worker;

struct spool {
	struct spool_options options; /* but dir */
	char *path;		      /* NULL: in memory */
	size_t capacity;	      /* bytes of a segment */
	struct segment *oldest, *newest;
	struct segment *spare; /* a list, in memory: their pages are resident */
	uint64_t size;	       /* bytes of all segments */
	struct position tail;  /* behind the last record */
	struct position acked; /* behind the last record that the reader has finished */
	struct position durable; /* behind the last record that survives a crash of the host */
	struct spool_unacked unacked_dropped;

	struct segment *reading; /* NULL: the next one to be added */
	uint64_t offset;
	struct position read; /* behind the last record that the reader got */
	struct segment_window window;

	struct position recovered; /* found at the start */
	struct position accepted, delivered, dropped[SPOOL_DROPS];
	struct outage unwritable; /* until a sync succeeds */
	uint64_t unwritten;	  /* records that were dropped before that */
	struct outage unreadable;
	unsigned int read_attempts; /* in vain */
	uint64_t searched;	    /* bytes since the last record, in vain */
	bool is_searching; /* for a record behind damage: not at the end yet */
	struct spool_dir *dir; /* NULL: in memory */
	struct worker *syncer;
	struct spool_progress noted; /* on disk */
	bool is_closing;
};

struct spool_item {
	const void *record; /* valid until the spool is called again */
	size_t len;
	struct position own;
	struct position end; /* position to acknowledge */
	bool is_in_place;    /* the record is where it was packed */
};

/**
 * Open a spool. Errors are logged, and so is damage that was found.
 *
 * @return 0; -EBUSY: another process has the directory; others: as open(2), mkdir(2)
 */
int spool_open(struct spool *spool, const struct spool_options *options);

/* Records that are not acknowledged stay in the directory, if there is one. */
void spool_close(struct spool *spool);

/**
 * Reserve room for a record of at most @len bytes, SEGMENT_RECORD_MAX at most. Fill it and call
 * spool_commit(), with no other call in between.
 *
 * @param own  the counts of the record: .seq is 1
 * @return where to write it; NULL: the record was dropped, and counted
 */
void *spool_reserve(struct spool *spool, size_t len, struct position own,
		    int64_t now_ms);

/* @len: of the record, at most as reserved. */
void spool_commit(struct spool *spool, size_t len);

/** Get the next record. @return false: there is none; with is_searching, none was found yet */
bool spool_read(struct spool *spool, struct spool_item *ret_item);

/**
 * Drop the record that was read last.
 *
 * @return false: records before it are not acknowledged; it will be read again
 */
bool spool_skip(struct spool *spool, const struct spool_item *item,
		enum spool_drop why);

/* Acknowledge all records before @end. An end before the last one is ignored. */
void spool_ack(struct spool *spool, struct position end);

/* Remove all records before @end, as spool_ack(), but count them as dropped. */
void spool_discard(struct spool *spool, struct position end, enum spool_drop why);

/* Read the records again that are not acknowledged, if they are still there. */
void spool_rewind(struct spool *spool);

/* Drop records that are too old; to be called about twice a second. */
void spool_expire(struct spool *spool, int64_t now_ms);

/*
 * Begin to make all records durable, and to remove acknowledged ones from the disk.
 * spool_finish_sync() takes the result. At most one sync is under way.
 */
void spool_start_sync(struct spool *spool);

/* Make all records durable as spool_start_sync(), and wait for the result. */
int spool_sync(struct spool *spool);

/*
 * Have all records in files, as far as that can be: there they survive a kill of the process.
 * @return 0, also of a spool in memory; or -errno
 */
int spool_write_out(struct spool *spool);

/** @return whether spool_start_sync() has nothing to do */
bool spool_is_settled(const struct spool *spool);

/* Call this when spool_fd() polls readable. */
void spool_finish_sync(struct spool *spool);

/** @return what polls readable after a sync; -1: the spool is in memory */
int spool_fd(const struct spool *spool);

static inline const char *spool_name(const struct spool *spool)
{
	return spool->path ?: "in memory";
}

static inline bool spool_has_unacked_dropped(const struct spool *spool)
{
	return position_is_before(spool->unacked_dropped.from,
				  spool->unacked_dropped.to);
}

/** @return whether there are records that the reader has not got */
static inline bool spool_has_more(const struct spool *spool)
{
	return position_is_before(spool->read, spool->tail);
}

/** @return whether the reader has got records that it has not acknowledged */
static inline bool spool_has_unacked(const struct spool *spool)
{
	return position_is_before(spool->acked, spool->read) ||
	       spool_has_unacked_dropped(spool);
}

/** @return counts of records that are neither acknowledged nor dropped */
static inline struct position spool_pending(const struct spool *spool)
{
	return position_add(position_sub(spool->tail, spool->acked),
			    position_sub(spool->unacked_dropped.to,
					 spool->unacked_dropped.from));
}

/* ---- Between the parts of a spool ----------------------------------------------- */

void spool_drop(struct spool *spool, enum spool_drop why, struct position what);

/* Remove segments that are acknowledged, except for the newest. */
void spool_remove_acked(struct spool *spool);

/*
 * Drop the records between @from and @end. Those that the reader got, and has not
 * acknowledged, become unacked_dropped.
 */
void spool_release(struct spool *spool, struct position from,
		   struct position end, enum spool_drop why);

/* The result of the last attempt to sync; 0: it succeeded. */
void spool_note_sync(struct spool *spool, int err);

/* Compute spool->durable from the segments. */
void spool_find_durable(struct spool *spool);

/* For a worker: one piece of work of a sync. */
void sync_work_free(void *work);
void sync_work_do(void *work);

#endif
