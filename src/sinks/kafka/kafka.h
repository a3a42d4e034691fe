/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The state of a sink, and what reports mean for its records and its producer. */
#ifndef NETOBS_SINKS_KAFKA_KAFKA_H
#define NETOBS_SINKS_KAFKA_KAFKA_H

#include "base/backoff.h"
#include "base/outage.h"
#include "producer.h"
#include "window.h"

struct kafka {
	struct sink_host *host;
	struct settings settings;
	struct producer producer;
	/* Batches of one record, for those that were in a batch that was refused:
	 * librdkafka 2.0 does not say which of them was why. NULL until needed. */
	struct producer single;
	struct outage outage;
	bool has_worked;	   /* records have arrived */
	rd_kafka_resp_err_t noted; /* a failure that is not logged yet */
	char noted_text[256];	   /* "": there is none */
	struct window window;
	int event_fd;

	struct message message; /* the next one to be sent, if it has a value */
	uint64_t held;		/* its number */

	bool is_single;		/* batches are of one record */
	struct backoff resend;	/* what failed; due_ms 0: nothing did */
	struct backoff replace; /* the producer; the same */
	int64_t progress_ms; /* the last acknowledgement, or since when one is due */

	uint64_t delivered, delivered_bytes, refused, retried, full, producers;
};

/* ---- What librdkafka reports: reports.c --------------------------------------------- */

/* All there is now. False: there is more, but it is @end_ms. */
bool reports_take(struct kafka *kafka, int64_t end_ms);

/* A record was not taken. @is_alone: none of a batch with it is why. */
void reports_fail(struct kafka *kafka, struct window_entry *entry,
		  rd_kafka_resp_err_t err, bool is_alone);

/* Some records are to be sent again, a while later. */
void reports_send_again(struct kafka *kafka);

/* Log a failure that is retried, unless this outage has a line about it. */
void reports_log(struct kafka *kafka, rd_kafka_resp_err_t err, const char *text);

/* Whether there is a failure that is logged only if records get stuck. */
bool reports_have_noted(const struct kafka *kafka);
void reports_log_noted(struct kafka *kafka);

/* Records arrive: an outage is over. */
void reports_recover(struct kafka *kafka);

#endif
