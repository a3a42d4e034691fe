/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* kafka://BROKER[,BROKER]/TOPIC and its options, as librdkafka has them. */
#ifndef NETOBS_SINKS_KAFKA_SETTINGS_H
#define NETOBS_SINKS_KAFKA_SETTINGS_H

#include "message.h"
#include "base/spec.h"

#include <librdkafka/rdkafka.h>

struct settings {
	char *name; /* BROKERS/TOPIC, for messages */
	char *topic;
	struct message_format format;
	rd_kafka_conf_t *conf; /* to be copied for each producer */
};

/* -EINVAL: what is wrong was logged. */
int settings_read(struct settings *settings, struct spec *spec,
		  const struct sink_host *host);

/* Set a property of librdkafka; it says what is wrong with it. */
void settings_set(struct spec *spec, rd_kafka_conf_t *conf, const char *name,
		  const char *value);

/* TLS and SASL, by the names that our options have. What is wrong is refused. */
void security_read(struct spec *spec, rd_kafka_conf_t *conf);

void settings_free(struct settings *settings);

#endif
