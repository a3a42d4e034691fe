/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* librdkafka's producer. A fatal error makes it useless: another one takes its place. */
#ifndef NETOBS_SINKS_KAFKA_PRODUCER_H
#define NETOBS_SINKS_KAFKA_PRODUCER_H

#include "settings.h"

struct producer {
	rd_kafka_t *handle; /* NULL: there is none */
	rd_kafka_topic_t *topic;
	rd_kafka_queue_t *queue; /* of events */
};

/**
 * @param is_single  its batches have one record
 * @param event_fd   an eventfd that signals events
 * @param text       on failure, the reason
 */
int producer_open(struct producer *producer, const struct settings *settings,
		  bool is_single, int event_fd, char *text, size_t size);

/*
 * Discard what it has not delivered. Its threads may wait for a name server before they
 * end; this waits for them for @wait_ms at most, then a thread of its own does.
 */
void producer_close(struct producer *producer, int wait_ms);

#endif
