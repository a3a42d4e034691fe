/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What librdkafka says, and what that means for records and for the producer. */
#ifndef NETOBS_SINKS_KAFKA_REPORTS_H
#define NETOBS_SINKS_KAFKA_REPORTS_H

#include "kafka.h"

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
