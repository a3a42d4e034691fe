/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The state of a sink, for tests to look at. */
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

#endif
