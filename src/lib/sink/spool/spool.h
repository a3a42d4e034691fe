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
#include "segment.h"
#include "spool_dir.h"

#include <stdbool.h>

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
