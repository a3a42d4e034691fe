/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records on their way to a collector: they wait here while it is away, in memory
 * or in a directory, within a limit. Whatever comes in is either acknowledged by
 * the reader, or still here, or counted as dropped.
 *
 * One thread uses a spool. It never waits for a disk but for room in the kernel's
 * page cache: what has to be waited for, a short-lived thread does.
 */
#ifndef NETOBS_SINK_SPOOL_SPOOL_H
#define NETOBS_SINK_SPOOL_SPOOL_H

#include "base/log.h"
#include "base/outage.h"
#include "segment.h"
#include "spool_dir.h"

#include <stdbool.h>

struct spool_options {
	const char *dir;    /* NULL: in memory */
	uint64_t max_bytes; /* with what the records take beside their contents */
	int64_t max_age_ms;    /* 0: any */
	int64_t since_1970_ms; /* of the clock that times are of: its zero */
	bool keep_oldest; /* when it is full, drop what comes, not what is there */
	const struct log *log;
};

/* Why records were dropped. */
enum spool_drop {
	SPOOL_FULL,
	SPOOL_TOO_OLD,
	SPOOL_DAMAGED,	   /* found so on disk, or missing there */
	SPOOL_UNWRITTEN,   /* the disk or the memory refused them */
	SPOOL_REFUSED,	   /* the collector refused it permanently */
	SPOOL_UNSUPPORTED, /* of a type that the sink cannot represent */
	SPOOL_DROPS,
};

/*
 * Records that the reader got and has not acknowledged, and that had to make room:
 * it may still deliver them, but cannot have them again. They come right before
 * what is left, and nothing else is read until it is known what became of them.
 */
struct spool_unacked {
	struct position from, to; /* the same: there are none */
	enum spool_drop why;
};

/* What fails at the moment: one outage, until both succeed. */
struct spool_writing {
	struct outage outage;
	bool append_fails, sync_fails;
	uint64_t cost;	    /* of the largest record that did not fit */
	uint64_t unwritten; /* records that were dropped before the outage */
};

struct worker;

struct spool {
	struct spool_options options; /* but dir */
	char *path;		      /* NULL: in memory */
	size_t capacity;	      /* bytes of a segment */
	struct segment *oldest, *newest;
	struct segment *spare;	 /* a list, in memory: their pages are there */
	uint64_t size;		 /* of all segments */
	struct position tail;	 /* behind what came last */
	struct position acked;	 /* the end of what the reader has finished */
	struct position durable; /* behind what a crash of the host leaves */
	struct spool_unacked unacked_dropped;

	struct segment *reading; /* NULL: what comes next */
	uint64_t offset;
	struct position read; /* behind what the reader got */
	struct segment_window window;

	struct position recovered; /* what was there at the start */
	struct position accepted, delivered, dropped[SPOOL_DROPS];
	struct spool_writing writing;
	struct outage unreadable;
	unsigned int read_attempts; /* in vain */
	uint64_t searched;	    /* bytes since the last record, in vain */
	bool is_searching;     /* there is more to be read than was found */
	struct spool_dir *dir; /* NULL: in memory */
	struct worker *syncer;
	struct spool_progress noted; /* on disk */
	bool is_closing;
};

struct spool_item {
	const void *record; /* valid until the spool is called again */
	size_t len;
	struct position own;
	struct position end; /* to be acknowledged */
	bool is_in_place;    /* where spool_reserve() had it written */
};

/*
 * -EBUSY: another process has the directory. Others: as open(2), mkdir(2). What is
 * wrong is logged, and so is what was found damaged.
 */
int spool_open(struct spool *spool, const struct spool_options *options);

/* With a directory: what is not acknowledged stays there. */
void spool_close(struct spool *spool);

/**
 * Room for a record of at most @len bytes, which are at most SEGMENT_RECORD_MAX, to be
 * filled and then added by spool_commit(), with no other call in between.
 *
 * @param own  what the record counts: .seq is 1
 * @return where to write it; NULL: it was dropped, and counted
 */
void *spool_reserve(struct spool *spool, size_t len, struct position own,
		    int64_t now_ms);

/* @len: of the record, no more than what was reserved. */
void spool_commit(struct spool *spool, size_t len);

/*
 * The next record that the reader has not got yet; false: there is none, or, with
 * is_searching, none was found so far.
 */
bool spool_read(struct spool *spool, struct spool_item *ret_item);

/**
 * Drop the record that was read last.
 *
 * @return false: records before it are not acknowledged; it will be read again
 */
bool spool_skip(struct spool *spool, const struct spool_item *item,
		enum spool_drop why);

/* All before @end need not be kept any more. Going back is ignored. */
void spool_ack(struct spool *spool, struct position end);

/* The same, but it counts as dropped. */
void spool_discard(struct spool *spool, struct position end, enum spool_drop why);

/* Read again what is not acknowledged, as far as it is still there. */
void spool_rewind(struct spool *spool);

/* Drop what is too old; to be called now and then, twice a second. */
void spool_expire(struct spool *spool, int64_t now_ms);

/*
 * Have all that was added become durable, and the disk forget what is acknowledged.
 * The result is taken by spool_finish_sync(). No more than one at a time is under way.
 */
void spool_start_sync(struct spool *spool);

/* The same, and wait. */
int spool_sync(struct spool *spool);

/* Nothing is left for spool_start_sync() to do. */
bool spool_is_settled(const struct spool *spool);

/* To be called once spool_fd() polls readable. */
void spool_finish_sync(struct spool *spool);

/* -1: in memory, where there is nothing to wait for. */
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

/*
 * It is nearly full, or was: records are dropped, or not read any more, unless some
 * of those that were read are acknowledged soon.
 */
static inline bool spool_is_pressed(const struct spool *spool)
{
	return spool_has_unacked_dropped(spool) ||
	       spool->size > spool->options.max_bytes / 4 * 3;
}

/* Between spool_append() and spool_ack(). */
static inline struct position spool_pending(const struct spool *spool)
{
	return position_add(position_sub(spool->tail, spool->acked),
			    position_sub(spool->unacked_dropped.to,
					 spool->unacked_dropped.from));
}

#endif
