/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* kafka://BROKER[,BROKER]/TOPIC and its options, as librdkafka has them. */
#ifndef NETOBS_SINKS_KAFKA_SETTINGS_H
#define NETOBS_SINKS_KAFKA_SETTINGS_H

#include "base/spec.h"
#include "sink/host_fields.h"
#include "sinks/pbflow/pbnetobs.h"

#include <librdkafka/rdkafka.h>

enum message_encoding { MESSAGE_PROTOBUF, MESSAGE_JSON };

enum message_key {
	MESSAGE_KEY_ADDRESSES, /* of both hosts: NetObserv's */
	MESSAGE_KEY_FLOW,      /* the same for both directions of a flow */
	MESSAGE_KEY_HOST,      /* this host's name */
	MESSAGE_KEY_NONE,
};

enum { MESSAGE_KEY_MAX = 64 }; /* HOST_NAME_MAX, too */

struct message_format {
	enum message_encoding encoding;
	enum message_key key;
	struct pbflow_options pbflow;
	char host[MESSAGE_KEY_MAX + 1];
	struct host_fields host_fields; /* fields of the host in JSON */
};

struct settings {
	char *name; /* BROKERS/TOPIC, for messages */
	char *topic;
	struct message_format format;
	rd_kafka_conf_t *conf; /* copied for each producer */
};

/* @return -EINVAL: there are errors, which were logged */
int settings_read(struct settings *settings, struct spec *spec,
		  const struct sink_host *host);

void settings_free(struct settings *settings);

#endif
