/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What to do after a call that failed: wait, or find the record that is to blame.
 *
 * A batch that is refused is halved until one record is left. That alone proves
 * nothing: the collector may refuse everything. So a record behind it is tried, 1, 2,
 * 4 ... further on; once the collector takes one of them and then refuses the first
 * one again, that is the culprit. As long as the collector takes none, all are kept.
 */
#ifndef NETOBS_SINKS_GRPC_RETRY_H
#define NETOBS_SINKS_GRPC_RETRY_H

#include "base/backoff.h"
#include "status.h"

#include <stdbool.h>
#include <stdint.h>

struct retry {
	uint32_t limit;	      /* records in a batch */
	uint32_t usual;	      /* the same, where none is suspect */
	uint64_t suspect_seq; /* before this one there is one that is refused */
	uint32_t refusals;    /* in a row, for what was sent */
	struct backoff backoff; /* failures: whatever was sent */

	uint64_t culprit_seq; /* the end of the record that was refused alone; 0: none */
	uint32_t distance; /* to the record that is tried instead; 0: it is that one */
	uint32_t begin; /* the distance that is tried first */
	bool is_proven; /* another was taken since */
	bool is_picky;	/* the collector has refused single records before */
};

/* A call that was refused. */
struct refusal {
	enum status_action action;
	uint32_t n_records;
	uint64_t end_seq;
	int64_t begun_ms;
};

/* Nothing is known of the collector. */
void retry_open(struct retry *retry);

/* There is a new connection: maybe to another collector. */
void retry_renew(struct retry *retry);

/* Again a while after a call that began at @begun_ms; that grows. */
void retry_later(struct retry *retry, int64_t begun_ms);

/* True: it was one record, and that is of no use to the collector. */
bool retry_refused(struct retry *retry, const struct refusal *refusal);

/* There is no record at the distance, but @n before that. */
void retry_find_nothing(struct retry *retry, uint32_t n);

/* @n_records up to @end_seq were taken, or the record at the distance. */
void retry_succeeded(struct retry *retry, uint32_t n_records, uint64_t end_seq);

/* One call at a time, since it may well fail. */
bool retry_is_cautious(const struct retry *retry);

/* The collector takes nothing at all, as far as is known. */
bool retry_is_hopeless(const struct retry *retry);

/* -1: at once. */
int retry_left_ms(const struct retry *retry);

/*
 * Records that the collector has, although one before them is not settled: they are
 * not sent again when the spool has them again.
 */
enum { AHEAD_MAX = 32 }; /* more are forgotten, and sent twice */

struct ahead {
	struct {
		uint64_t from, end; /* as struct position counts records */
	} ranges[AHEAD_MAX];
	uint32_t n;
};

void ahead_add(struct ahead *ahead, uint64_t from, uint64_t end);

/* The record that ends at @end is one of them. */
bool ahead_has(const struct ahead *ahead, uint64_t end);

/* All up to @end is settled. */
void ahead_settle(struct ahead *ahead, uint64_t end);

#endif
