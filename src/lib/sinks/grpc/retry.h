/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The status of a call, the outcome for its records, and when to call again. */
#ifndef NETOBS_SINKS_GRPC_RETRY_H
#define NETOBS_SINKS_GRPC_RETRY_H

#include "base/outage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The codes, of gRPC's 17, that are used by name. */
enum {
	STATUS_OK = 0,
	STATUS_INVALID_ARGUMENT = 3,
	STATUS_DEADLINE_EXCEEDED = 4,
	STATUS_RESOURCE_EXHAUSTED = 8,
	STATUS_OUT_OF_RANGE = 11,
	STATUS_UNIMPLEMENTED = 12,
	STATUS_INTERNAL = 13,
	STATUS_UNAVAILABLE = 14,
	STATUS_DATA_LOSS = 15,
	STATUS_UNKNOWN = 2,
};

enum status_action {
	STATUS_ACCEPTED,
	STATUS_LATER,	/* the server may accept the same records later */
	STATUS_SUSPECT, /* the server or one of the records is to blame */
	STATUS_TOO_BIG, /* the server may accept fewer records at a time */
	STATUS_REFUSED, /* one of the records is to blame */
};

/* @message: the collector's text, which distinguishes a size limit from a quota. */
enum status_action status_action(int status, const char *message);

/* "UNAVAILABLE" ... */
const char *status_name(int status);

enum { STATUS_RETRY_MAX_S = 300 };

/**
 * @param text  of a grpc-status-details-bin header, which may be anything
 * @return ms that the server asks to wait (google.rpc.RetryInfo), within STATUS_RETRY_MAX_S; 0: it
 *         does not
 */
int64_t status_retry_ms(const char *text, size_t len);

/** @return the number in a grpc-status header; STATUS_UNKNOWN: it has none */
int status_parse(const char *text, size_t len);

/*
 * Decode a grpc-message header, which has %XX for unusual characters. For the log, a
 * question mark takes the place of all that is not printable ASCII.
 */
void status_decode(const char *text, size_t len, char *to, size_t size);

/*
 * Actions after a failed call: wait, or find the record that the collector refuses.
 *
 * A refused batch is halved until one record is left. The collector may refuse all records,
 * so one behind it is tried: the next, then those 2, 4 ... further on. Once the collector
 * has accepted one of these, and refused the first one again, that one is dropped. As long
 * as the collector accepts none, all are kept.
 */
struct retry {
	uint32_t limit;		/* records in a batch */
	uint32_t usual;		/* limit while no record is suspect */
	uint64_t suspect_seq;	/* a record before this one is refused */
	uint32_t refusals;	/* in a row, because of the records */
	struct backoff backoff; /* after failures of any kind */

	uint64_t culprit_seq; /* the end of the record that was refused alone; 0: none */
	uint32_t distance; /* from it to the record that is tried next */
	uint32_t begin;	   /* the first distance to try */
	bool is_proven;	   /* another record was accepted since */
	bool is_picky;	   /* the collector has refused single records before */
};

/* A refused call. */
struct refusal {
	enum status_action action;
	uint32_t n_records;
	uint64_t end_seq;
	int64_t begun_ms;
};

/* For a collector of which nothing is known. */
void retry_open(struct retry *retry);

/* Call on a new connection, maybe to another collector. */
void retry_renew(struct retry *retry);

/* Try again after a pause, which grows, from @begun_ms on, when the call began. */
void retry_later(struct retry *retry, int64_t begun_ms);

/* The collector asks to wait for @ms from now, at least. */
void retry_wait(struct retry *retry, int64_t ms);

/** @return whether the call had one record, and the collector will never accept that */
bool retry_refused(struct retry *retry, const struct refusal *refusal);

/* Call if there is no record at the distance, but @n before it. */
void retry_find_nothing(struct retry *retry, uint32_t n);

/* @n_records up to @end_seq were accepted, or the record at the distance. */
void retry_succeeded(struct retry *retry, uint32_t n_records, uint64_t end_seq);

/** @return whether only one call may be open, because it may well fail */
bool retry_is_cautious(const struct retry *retry);

/** @return whether the collector has refused all records that were tried */
bool retry_is_hopeless(const struct retry *retry);

/** @return ms until the next call; -1: at once */
int retry_left_ms(const struct retry *retry);

/*
 * Deadline and size of calls, adapted to the collector's speed. After a deadline, the
 * records of the call are sent again, which the collector may have already. So the next
 * call has twice the time and half the records.
 */

enum { PACE_MOST_MS = 60 * 1000 };

struct pace {
	uint32_t first_ms, most_ms;
	uint32_t deadline_ms;
	uint32_t limit;	   /* records in a batch; UINT32_MAX: any number */
	uint32_t too_many; /* of these a call took too long */
};

/* @first_ms: the deadline of the first call. */
void pace_open(struct pace *pace, uint32_t first_ms);

/* The deadline of a call of @n_records has passed. */
void pace_timed_out(struct pace *pace, uint32_t n_records);

/* A call of @n_records succeeded in @took_ms. */
void pace_succeeded(struct pace *pace, uint32_t n_records, int64_t took_ms);

/** @return whether only one call may be open */
static inline bool pace_is_cautious(const struct pace *pace)
{
	return pace->limit != UINT32_MAX;
}

#endif
