/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records that are sent together, or in parts where a collector refuses some of them. A batch keeps
 * their text until the outcome of all is known. An attempt has records that wait, in their order.
 */
#ifndef NETOBS_SINKS_BATCH_BATCH_H
#define NETOBS_SINKS_BATCH_BATCH_H

#include "base/buffer.h"
#include "sink/module.h"

enum outcome { OUTCOME_WAITING, OUTCOME_ACCEPTED, OUTCOME_REFUSED };

struct entry {
	size_t at, len; /* position in the batch's text */
	uint32_t type;
	uint32_t items; /* number of items that answers count */
	enum outcome outcome;
	struct position end;
};

struct batch {
	struct buffer text;
	struct entry *entries;
	uint32_t n, size;
	uint32_t n_waiting;
	uint32_t n_settled; /* the first ones, whose outcome the spool knows */
	uint32_t *tried;    /* entries of the attempt */
	uint32_t n_tried;
	uint32_t limit; /* records of an attempt */
	bool is_probed; /* one of its records was refused alone */
};

/** Have memory for one more record of up to @len bytes. @return false: there is none */
bool batch_reserve(struct batch *batch, size_t len);

/** @return where to write the record that batch_add() adds, after batch_reserve() */
static inline char *batch_room(const struct batch *batch)
{
	return batch->text.bytes + batch->text.len;
}

/** Add a record of a @type, whose @len bytes are at batch_room(). */
void batch_add(struct batch *batch, size_t len, uint32_t type,
	       struct position end, uint32_t items);

/** Begin an attempt with the first records that wait, at most the limit. */
void batch_try(struct batch *batch);

/** Record @i of the attempt has this outcome. */
void batch_decide_one(struct batch *batch, uint32_t i, enum outcome outcome);

/** All tried records have this outcome. */
void batch_decide(struct batch *batch, enum outcome outcome);

/**
 * All that was tried was accepted but for @items, which the answer does not name: those of the last records.
 *
 * @return how many records that is
 */
uint32_t batch_decide_count(struct batch *batch, uint64_t items);

/**
 * The attempt was refused because of its records. It is halved until one record is left, which is
 * then to blame. If many are refused like that, so is the whole batch once one of its records was.
 *
 * @param in_row  records that were refused alone, since any was accepted
 * @return whether the tried records are refused; else fewer are to be tried
 */
bool batch_refuse(struct batch *batch, uint32_t *in_row);

/** The attempt was too large, or took too long: halve it, and later batches as well. */
void batch_shrink(struct batch *batch, size_t *max_bytes, size_t least_bytes);

/** The attempt was accepted: the next one may have more records. */
void batch_grow(struct batch *batch);

/** @return entry @i of the attempt */
static inline const struct entry *batch_tried(const struct batch *batch,
					      uint32_t i)
{
	return &batch->entries[batch->tried[i]];
}

/** @return bytes of the records of the attempt */
size_t batch_tried_bytes(const struct batch *batch);

/** Acknowledge or refuse the first records, as far as their outcome is known. */
void batch_settle(struct batch *batch, struct sink_host *host);

/** Empty it; its memory stays. */
void batch_clear(struct batch *batch);

/** A zeroed batch is fine. */
void batch_free(struct batch *batch);

#endif
