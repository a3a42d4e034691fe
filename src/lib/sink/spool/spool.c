// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool.h"

#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEGMENTS = 8, /* in a full spool, at least: it drops one at a time */
	MEMORY_MIN = 2 * SEGMENT_RECORD_MAX,
	MEMORY_MAX = 1 << 20,
	FILE_MIN = 2 * SEGMENT_BUFFER,
	UNWRITTEN_MAX = 3, /* segments */
};

void spool_drop(struct spool *spool, enum spool_drop why, struct position what)
{
	spool->dropped[why] = position_add(spool->dropped[why], what);
}

/* ---- Segments ------------------------------------------------------------------ */

static void add_segment(struct spool *spool, struct segment *segment)
{
	if (spool->newest)
		spool->newest->next = segment;
	else
		spool->oldest = segment;
	spool->newest = segment;
	spool->size += segment->size;
}

/* Segments that are in memory in part. */
static size_t count_unwritten(const struct spool *spool)
{
	size_t n = 0;

	for (const struct segment *segment = spool->oldest; segment;
	     segment = segment->next)
		n += segment->written < segment->size;
	return n;
}

/*
 * While a disk fails, a few segments may be in memory: a reader that keeps up does
 * not need the disk.
 */
static int start_segment(struct spool *spool, int64_t now_ms)
{
	struct segment *segment = spool->spare;
	int err = 0;

	if (segment) {
		spool->spare = segment->next;
		segment_renew(segment, spool->tail, now_ms);
	} else {
		segment = segment_new(spool->tail, now_ms,
				      spool->dir ? SEGMENT_BUFFER :
						   spool->capacity);
	}
	if (!segment)
		return -ENOMEM;
	segment->made_at_ms = now_ms + spool->options.since_1970_ms;
	segment->has_checksums = spool->dir;
	if (spool->dir)
		err = spool_dir_attach(spool->dir, segment);
	if (err && count_unwritten(spool) >= UNWRITTEN_MAX) {
		segment_free(segment);
		return err;
	}
	add_segment(spool, segment);
	return 0;
}

/* The reader cannot read its unacknowledged records any more. */
static void remove_oldest(struct spool *spool)
{
	struct segment *segment = spool->oldest;

	if (position_is_before(spool->acked, segment->end))
		spool->acked = segment->end;
	if (position_is_before(spool->read, segment->end))
		spool->read = segment->end;
	if (spool->reading == segment) {
		spool->reading = segment->next;
		spool->offset = 0;
	}
	if (spool->window.segment == segment)
		spool->window.segment = NULL;
	spool->oldest = segment->next;
	if (spool->newest == segment)
		spool->newest = NULL;
	spool->size -= segment->size;
	if (spool->dir) {
		spool_dir_forget(spool->dir, segment->first.seq);
		segment_free(segment);
		return;
	}
	segment->next = spool->spare;
	spool->spare = segment;
}

static void drop_oldest(struct spool *spool, enum spool_drop why)
{
	struct segment *segment = spool->oldest;
	struct position from = position_is_before(segment->first, spool->acked) ?
				       spool->acked :
				       segment->first;

	if (position_is_before(spool->acked, from))
		spool_drop(spool, SPOOL_DAMAGED,
			   position_sub(from, spool->acked));
	if (position_is_before(from, segment->end))
		spool_release(spool, from, segment->end, why);
	remove_oldest(spool);
}

void spool_remove_acked(struct spool *spool)
{
	while (spool->oldest && spool->oldest != spool->newest &&
	       !position_is_before(spool->acked, spool->oldest->end))
		remove_oldest(spool);
}

/* ---- Outages --------------------------------------------------------------------- */

static void note_failure(struct spool *spool, int err)
{
	if (outage_is_on(&spool->unwritable))
		return;
	spool->unwritten = spool->dropped[SPOOL_UNWRITTEN].seq;
	outage_log(
		&spool->unwritable, spool->options.log, NETOBS_LOG_WARNING, "",
		"spool %s: cannot write: %s; new records are kept in memory, or dropped if they do not fit",
		spool_name(spool), strerror(-err));
}

static void end_unwritable(struct spool *spool)
{
	uint64_t dropped = spool->dropped[SPOOL_UNWRITTEN].seq - spool->unwritten;

	outage_end(&spool->unwritable, spool->options.log, NETOBS_LOG_WARNING,
		   "spool %s: can be written to again; %llu records were dropped",
		   spool_name(spool), (unsigned long long)dropped);
}

/* A successful sync has written all that was in memory: there is room again. */
void spool_note_sync(struct spool *spool, int err)
{
	if (err)
		note_failure(spool, err);
	else
		end_unwritable(spool);
}

/* ---- Adding -------------------------------------------------------------------- */

/* Make room for a record within the limit. False: there is no room. */
static bool make_spool_room(struct spool *spool, uint64_t cost)
{
	while (spool->size + cost > spool->options.max_bytes) {
		if (!spool->oldest)
			return false;
		drop_oldest(spool, SPOOL_FULL);
	}
	return true;
}

/* A segment of an earlier process is continued if no record is missing behind it. */
static bool is_to_be_continued(const struct spool *spool, uint64_t cost,
			       int64_t now_ms)
{
	int64_t max_age = spool->options.max_age_ms;
	struct segment *segment = spool->newest;

	if (!segment || segment->is_closed ||
	    segment->end.seq != spool->tail.seq ||
	    segment->size + cost > spool->capacity)
		return false;
	if (max_age && segment->size &&
	    now_ms - segment->made_ms > max_age / SEGMENTS)
		return false;
	return segment->buf || !segment_resume(segment);
}

/* Write the part that is in memory to the file. */
static int finish_segment(struct spool *spool, struct segment *segment)
{
	int err = 0;

	if (spool->dir && segment->fd < 0)
		err = spool_dir_attach(spool->dir, segment);
	return err ?: segment_write_out(segment);
}

static int next_segment(struct spool *spool, int64_t now_ms)
{
	int err = spool->newest ? finish_segment(spool, spool->newest) : 0;

	if (err && count_unwritten(spool) >= UNWRITTEN_MAX)
		return err;
	err = start_segment(spool, now_ms);
	if (!err)
		spool_remove_acked(spool);
	return err;
}

void *spool_reserve(struct spool *spool, size_t len, struct position own,
		    int64_t now_ms)
{
	uint64_t cost = segment_cost(len);
	bool is_continued;
	void *record;
	int err;

	spool->accepted = position_add(spool->accepted, own);
	if (spool->size + cost > spool->options.max_bytes &&
	    !make_spool_room(spool, cost)) {
		spool_drop(spool, SPOOL_FULL, own);
		return NULL;
	}
	is_continued = is_to_be_continued(spool, cost, now_ms);
	err = is_continued ? 0 : next_segment(spool, now_ms);
	err = err ?: segment_reserve(spool->newest, len, own, &record);
	if (err && is_continued && spool->dir) { /* the segment's buffer is full */
		err = next_segment(spool, now_ms);
		err = err ?: segment_reserve(spool->newest, len, own, &record);
	}
	if (err) {
		note_failure(spool, err);
		spool_drop(spool, SPOOL_UNWRITTEN, own);
		return NULL;
	}
	if (!spool->dir)
		end_unwritable(spool);
	if (!spool->newest->size)
		spool->newest->made_ms = now_ms;
	spool->newest->used_ms = now_ms;
	return record;
}

void spool_commit(struct spool *spool, size_t len)
{
	segment_commit(spool->newest, len);
	spool->size += segment_cost(len);
	spool->tail = spool->newest->end;
}

/* ---- Life ---------------------------------------------------------------------- */

/* Records from the future of a clock that was set back are of now. */
static void end_future(struct segment *segment, int64_t now_ms)
{
	for (; segment; segment = segment->next)
		if (segment->used_ms > now_ms)
			segment->used_ms = now_ms;
}

void spool_expire(struct spool *spool, int64_t now_ms)
{
	spool->read_attempts += outage_is_on(&spool->unreadable);
	end_future(spool->oldest, now_ms);
	segment_free_all(TAKE_PTR(spool->spare));
	while (spool->options.max_age_ms && spool->oldest && spool->oldest->size &&
	       now_ms - spool->oldest->used_ms > spool->options.max_age_ms)
		drop_oldest(spool, SPOOL_TOO_OLD);
}

static size_t clamp_size(uint64_t size, size_t min, size_t max)
{
	return min_u64(max_u64(size, min), max);
}

/*
 * Take over the segments of a directory. Records that were there once, and are not any
 * more, are found to be missing when the reader gets there.
 */
static void adopt_segments(struct spool *spool, struct segment *segments,
			   struct spool_progress progress)
{
	struct position at = progress.acked;

	spool->acked = progress.acked;
	if (position_is_before(at, progress.durable))
		at = progress.durable;
	for (struct segment *segment = segments, *next; segment; segment = next) {
		next = segment->next;
		segment->next = NULL;
		segment->made_ms -= spool->options.since_1970_ms;
		segment->used_ms -= spool->options.since_1970_ms;
		if (position_is_before(at, segment->end))
			at = segment->end;
		add_segment(spool, segment);
	}
	spool->tail = at;
	spool->noted = progress;
	spool->durable = progress.durable;
	spool->recovered = position_sub(at, progress.acked);
	spool_find_durable(spool);
	spool_remove_acked(spool);
	spool_rewind(spool);
}

int spool_open(struct spool *spool, const struct spool_options *options)
{
	uint64_t part = options->max_bytes / SEGMENTS;
	struct segment *segments;
	struct spool_progress progress;
	int err;

	*spool = (struct spool){
		.options = *options,
		.capacity = options->dir ?
				    clamp_size(part, FILE_MIN, SEGMENT_FILE_MAX) :
				    clamp_size(part, MEMORY_MIN, MEMORY_MAX),
	};
	spool->options.dir = NULL; /* the directory is the caller's */
	if (!options->dir)
		return start_segment(spool, 0);
	spool->path = strdup(options->dir);
	err = spool->path ?
		      worker_new(sync_work_do, sync_work_free, &spool->syncer) :
		      -ENOMEM;
	if (!err)
		err = spool_dir_open(options->dir, options->log, &spool->dir,
				     &segments, &progress);
	if (err) {
		worker_free(spool->syncer);
		free(spool->path);
		*spool = (struct spool){ 0 };
		return err;
	}
	adopt_segments(spool, segments, progress);
	return 0;
}

void spool_close(struct spool *spool)
{
	spool->is_closing = true;
	if (spool->dir)
		spool_sync(spool);
	worker_free(spool->syncer);
	segment_free_all(spool->oldest);
	segment_free_all(spool->spare);
	segment_window_free(&spool->window);
	spool_dir_close(spool->dir);
	free(spool->path);
	*spool = (struct spool){ 0 };
}
