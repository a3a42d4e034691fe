/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* kafka://BROKER[,BROKER]/TOPIC and its options, as librdkafka has them. */
#ifndef NETOBS_SINKS_KAFKA_SETTINGS_H
#define NETOBS_SINKS_KAFKA_SETTINGS_H

#include "message.h"
#include "security.h"

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

void settings_free(struct settings *settings);

#endif
