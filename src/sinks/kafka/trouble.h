/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Log a failure once, and its end. librdkafka reports each attempt to reach each
 * broker; as long as records arrive, none of that matters.
 */
#ifndef NETOBS_SINKS_KAFKA_TROUBLE_H
#define NETOBS_SINKS_KAFKA_TROUBLE_H

#include "base/log.h"

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

enum { TROUBLE_KINDS = 8, TROUBLE_TEXT = 256 };

struct trouble {
	const struct log *log;
	const char *name; /* of the sink's target */
	bool has_worked;
	rd_kafka_resp_err_t told[TROUBLE_KINDS];
	size_t n_told; /* 0: all is well */
	rd_kafka_resp_err_t last;
	char text[TROUBLE_TEXT]; /* "": nothing has happened */
};

/* A failure that is retried. Logged when records get stuck. */
void trouble_note(struct trouble *trouble, rd_kafka_resp_err_t err,
		  const char *text);

/* The same, logged now. */
void trouble_tell(struct trouble *trouble, rd_kafka_resp_err_t err,
		  const char *text);

/* Records are stuck. */
void trouble_stuck(struct trouble *trouble);

/* Records arrive. */
void trouble_over(struct trouble *trouble);

/* A noted failure that is logged if records get stuck. */
static inline bool trouble_waits(const struct trouble *trouble)
{
	return trouble->text[0] && !trouble->n_told;
}

#endif
