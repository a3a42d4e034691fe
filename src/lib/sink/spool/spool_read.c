// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Reading and acknowledging the records of a spool. */
#include "spool.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	READ_ATTEMPTS = 10,   /* calls of spool_expire() */
	SEARCH_MAX = 1 << 20, /* bytes that a call looks for a record in */
};

/* ---- Dropped and not acknowledged --------------------------------------------------------------------- */

void spool_release(struct spool *spool, struct position from,
		   struct position end, enum spool_drop why)
{
	struct position got =
		position_is_before(spool->read, end) ? spool->read : end;

	if (position_is_before(from, got)) {
		if (!spool_has_unacked_dropped(spool))
			spool->unacked_dropped.from = from;
		spool->unacked_dropped.to = got;
		spool->unacked_dropped.why = why;
		from = got;
	}
	spool_drop(spool, why, position_sub(end, from));
}

/* The reader has finished all before @end: add the part of it that is here to @count. */
static void settle_unacked_dropped(struct spool *spool, struct position end,
				   struct position *count)
{
	struct spool_unacked *unacked = &spool->unacked_dropped;

	if (position_is_before(unacked->to, end))
		end = unacked->to;
	if (!position_is_before(unacked->from, end))
		return;
	*count = position_add(*count, position_sub(end, unacked->from));
	unacked->from = end;
}

/* ---- Reading ------------------------------------------------------------------ */

static void end_outage(struct spool *spool)
{
	outage_end(&spool->unreadable, spool->options.log, NETOBS_LOG_WARNING,
		   "spool %s: can be read again", spool_name(spool));
}

static void note_damage(struct spool *spool, struct segment *segment, int err)
{
	if (segment->is_damaged)
		return;
	segment->is_damaged = true;
	log_error(
		spool->options.log,
		"spool %s: %016llx.seg cannot be read at byte %llu: %s; records there are dropped, the others sent",
		spool_name(spool), (unsigned long long)segment->first.seq,
		(unsigned long long)(sizeof(struct segment_head) + spool->offset),
		err == -EBADMSG ? "it is damaged" : strerror(-err));
}

/* A disk that cannot be read now may be readable later. */
static bool is_hopeless(struct spool *spool, int err)
{
	if (err == -EBADMSG)
		return true;
	if (!outage_is_on(&spool->unreadable))
		outage_log(&spool->unreadable, spool->options.log,
			   NETOBS_LOG_ERROR, "",
			   "spool %s: cannot read: %s; trying again",
			   spool_name(spool), strerror(-err));
	return spool->read_attempts >= READ_ATTEMPTS;
}

/*
 * Continue behind an unreadable range; the next record shows how many records are missing.
 *
 * @return false: not now
 */
static bool skip_unreadable(struct spool *spool, int err)
{
	uint64_t place = sizeof(struct segment_head) + spool->offset,
		 step = SEGMENT_WORD;

	if (!is_hopeless(spool, err))
		return false;
	note_damage(spool, spool->reading, err);
	if (err != -EBADMSG)
		step = min_u64(SEGMENT_BLOCK - place % SEGMENT_BLOCK,
			       spool->reading->written - spool->offset);
	spool->offset += step;
	spool->searched += step;
	spool->is_searching = spool->searched >= SEARCH_MAX;
	if (spool->is_searching)
		spool->searched = 0;
	return !spool->is_searching;
}

/** Records before @next are missing. @return false: others have to be acknowledged first */
static bool skip_gap(struct spool *spool, struct position next)
{
	if (position_is_before(spool->acked, spool->read))
		return false;
	spool_drop(spool, SPOOL_DAMAGED, position_sub(next, spool->acked));
	spool->acked = next;
	spool->read = next;
	return true;
}

/** Find the segment that has the next record. @return false: no segment has it */
static bool find_next(struct spool *spool)
{
	if (!spool->reading)
		spool->reading = spool->oldest;
	while (spool->reading && spool->offset >= spool->reading->size) {
		if (!spool->reading->next)
			return false;
		spool->reading = spool->reading->next;
		spool->offset = 0;
	}
	return spool->reading;
}

bool spool_read(struct spool *spool, struct spool_item *ret_item)
{
	spool->is_searching = false;
	while (!spool_has_unacked_dropped(spool) && find_next(spool)) {
		const struct record_head *head;
		const struct segment *segment = spool->reading;
		int err = segment_read(segment, &spool->window, spool->offset,
				       &head);

		if (!err && (head->before.seq < segment->first.seq ||
			     head->before.seq >= segment->end.seq))
			err = -EBADMSG; /* the record is not where it should be */
		if (err && !skip_unreadable(spool, err))
			return false;
		if (err)
			continue;
		if (outage_is_on(&spool->unreadable))
			end_outage(spool);
		spool->read_attempts = spool->searched = 0;
		if (!position_is_before(spool->read,
					position_add(head->before, head->own))) {
			spool->offset += segment_cost(head->len);
			continue; /* the record was read before a rewind */
		}
		if (position_is_before(spool->read, head->before) &&
		    !skip_gap(spool, head->before))
			return false;
		spool->offset += segment_cost(head->len);
		spool->read = position_add(head->before, head->own);
		*ret_item = (struct spool_item){
			.record = head + 1,
			.len = head->len,
			.own = head->own,
			.end = spool->read,
			.is_in_place = !spool->dir,
		};
		return true;
	}
	/* The last records may be missing, too. */
	if (!spool_has_unacked_dropped(spool) && spool_has_more(spool))
		skip_gap(spool, spool->tail);
	return false;
}

bool spool_skip(struct spool *spool, const struct spool_item *item,
		enum spool_drop why)
{
	if (spool->acked.seq + 1 != item->end.seq) {
		spool->offset -= segment_cost(item->len);
		spool->read = position_sub(item->end, item->own);
		return false;
	}
	spool_drop(spool, why, item->own);
	spool->acked = item->end;
	return true;
}

/* A segment in memory that is read to its end can be filled again. */
static void reuse_last(struct spool *spool)
{
	struct segment *segment = spool->newest;

	if (spool->dir || !segment || segment != spool->oldest ||
	    position_is_before(spool->acked, spool->tail) || !segment->size)
		return;
	spool->size -= segment->size;
	segment->size = 0;
	segment->first = segment->end;
	spool->reading = NULL;
	spool->offset = 0;
}

/* The reader has finished all before @end: add it to @count. */
static void pass_records(struct spool *spool, struct position end,
			 struct position *count)
{
	assert(end.seq <= spool->read.seq);
	settle_unacked_dropped(spool, end, count);
	if (!position_is_before(spool->acked, end))
		return;
	*count = position_add(*count, position_sub(end, spool->acked));
	spool->acked = end;
	spool_remove_acked(spool);
	reuse_last(spool);
}

void spool_ack(struct spool *spool, struct position end)
{
	pass_records(spool, end, &spool->delivered);
}

void spool_discard(struct spool *spool, struct position end, enum spool_drop why)
{
	pass_records(spool, end, &spool->dropped[why]);
}

/* Read from the oldest segment on; its acknowledged records are skipped then. */
void spool_rewind(struct spool *spool)
{
	struct segment *segment = spool->oldest;

	settle_unacked_dropped(spool, spool->unacked_dropped.to,
			       &spool->dropped[spool->unacked_dropped.why]);
	while (segment && segment->next &&
	       !position_is_before(spool->acked, segment->end))
		segment = segment->next;
	spool->reading = segment;
	spool->offset = 0;
	spool->read = spool->acked;
}
