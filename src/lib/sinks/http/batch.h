/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records that are sent in one request, or in several where a server refuses some of
 * them: an attempt has the first records that wait, up to a limit.
 */
#ifndef NETOBS_SINKS_HTTP_BATCH_H
#define NETOBS_SINKS_HTTP_BATCH_H

#include "bulk_answer.h"
#include "transfer.h"

#include "sink/spool/position.h"

enum outcome { OUTCOME_WAITING, OUTCOME_ACCEPTED, OUTCOME_REFUSED };

struct entry {
	size_t at, len; /* position in the batch's text */
	uint32_t stream;
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
	uint32_t limit;	    /* records of an attempt */
	int64_t due_ms;	    /* not before this time */
	bool is_probed;	    /* one of its records was refused alone */
	uint32_t *tried; /* entries of the attempt, in the order of the body */
	uint32_t n_tried;
	struct buffer body;
	uint32_t n_answered; /* tried records with an answer, in a bulk answer */
	uint32_t n_accepted, n_refused;
	char reason[BULK_TEXT_MAX]; /* reason for the first record that was refused, or not accepted */
	struct bulk_answer bulk;
	struct buffer answer; /* the whole answer, for FORMAT_ANSWERS_COUNT */
	struct request request;
};

/**
 * Get the outcome of records from a status of HTTP. A failure of the server, of its configuration
 * or of credentials, and not of the records, may end: they wait.
 */
enum outcome status_outcome(long status);

/** @return whether there is room for a record of @len bytes in a batch of @bytes and @records */
bool batch_has_room(const struct batch *batch, size_t len, size_t bytes,
		    uint32_t records);

/**
 * Have memory for one more record of up to @len bytes.
 *
 * @return false: there is none
 */
bool batch_reserve(struct batch *batch, size_t len);

/** Add a record, which is reserved: @text is what format_record() wrote of it. */
void batch_add(struct batch *batch, const char *text, size_t len,
	       uint32_t stream, struct position end, uint32_t items);

/** @return what reads the answers to the batch, by what @answer says */
struct answer_reader batch_reader(struct batch *batch, enum format_answer answer);

/**
 * Make the body of the next attempt.
 *
 * @return 0 or -errno
 */
int batch_make_body(struct batch *batch, const struct format *format,
		    struct packer *packer);

/** All tried records have this outcome. */
void batch_decide(struct batch *batch, enum outcome outcome);

/**
 * All that was tried was accepted but for @items, which the answer does not name: those of the last records.
 *
 * @return how many records that is
 */
uint32_t batch_decide_count(struct batch *batch, uint64_t items);

/** Acknowledge or refuse the first records, as far as their outcome is known. */
void batch_settle(struct batch *batch, struct sink_host *host);

/** Empty it, whose request is not open; its memory stays. */
void batch_clear(struct batch *batch);
void batch_free(struct batch *batch);

#endif
