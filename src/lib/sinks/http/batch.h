/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A batch and its requests. */
#ifndef NETOBS_SINKS_HTTP_BATCH_H
#define NETOBS_SINKS_HTTP_BATCH_H

#include "bulk_answer.h"
#include "transfer.h"

#include "sinks/batch/batch.h"

struct http_batch {
	struct batch records;
	uint32_t limit;	    /* records of an attempt */
	int64_t due_ms;	    /* not before this time */
	bool is_probed;	    /* one of its records was refused alone */
	struct buffer body; /* of the attempt, whose records are in its order */
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

/** @return what reads the answers to the batch, by what @answer says */
struct answer_reader http_batch_reader(struct http_batch *batch,
				       enum format_answer answer);

/**
 * Make the body of the next attempt.
 *
 * @return 0 or -errno
 */
int http_batch_make_body(struct http_batch *batch, const struct format *format,
			 struct packer *packer);

/** Empty it, whose request is not open; its memory stays. */
void http_batch_clear(struct http_batch *batch);
void http_batch_free(struct http_batch *batch);

#endif
