/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* librdkafka's producer, one after the other: a fatal error ends one's use. */
#ifndef NETOBS_SINKS_KAFKA_PRODUCER_H
#define NETOBS_SINKS_KAFKA_PRODUCER_H

#include "settings.h"

struct producer {
	rd_kafka_t *handle; /* NULL: there is none */
	rd_kafka_topic_t *topic;
	rd_kafka_queue_t *queue; /* of events */
};

/*
 * @is_single: its batches are of one record. @event_fd: an eventfd, which signals
 * events. Else @text says what is wrong.
 */
int producer_open(struct producer *producer, const struct settings *settings,
		  bool is_single, int event_fd, char *text, size_t size);

/*
 * What it has not delivered is gone. Its threads may have to wait for a name server
 * to end, which a thread does; this waits for that for @wait_ms at most.
 */
void producer_close(struct producer *producer, int wait_ms);

#endif
