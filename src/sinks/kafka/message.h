/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a record is in Kafka: a value, and the key that chooses its partition. */
#ifndef NETOBS_SINKS_KAFKA_MESSAGE_H
#define NETOBS_SINKS_KAFKA_MESSAGE_H

#include "sinks/pbflow/pbflow.h"

#include <stdbool.h>

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
};

struct message {
	size_t key_len; /* 0: none */
	size_t value_len;
	uint8_t key[MESSAGE_KEY_MAX];
	uint8_t *value; /* of malloc(3); NULL: there is none */
};

/**
 * @return 0; -ENOMEM, without a change
 */
int message_make(struct message *message, const struct message_format *format,
		 const struct netobs_record *record);

#endif
