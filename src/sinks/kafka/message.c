// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "message.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One end of a flow. */
struct end {
	uint8_t address[16];
	uint16_t port; /* network byte order */
} __attribute__((packed));

/* The same for both directions: the lesser end comes first. */
static size_t make_flow_key(uint8_t *key, enum message_key kind,
			    const struct netobs_flow *flow)
{
	bool is_whole = kind == MESSAGE_KEY_FLOW;
	bool has_ports = is_whole && flow->has & NETOBS_HAS_PORTS;
	size_t len = is_whole ? sizeof(struct end) : sizeof(flow->src);
	struct end ends[2] = {
		{ .port = has_ports ? htons(flow->src_port) : 0 },
		{ .port = has_ports ? htons(flow->dst_port) : 0 },
	};
	bool swap;

	memcpy(ends[0].address, flow->src, sizeof(flow->src));
	memcpy(ends[1].address, flow->dst, sizeof(flow->dst));
	swap = memcmp(&ends[0], &ends[1], sizeof(ends[0])) > 0;
	memcpy(key, &ends[swap], len);
	memcpy(key + len, &ends[!swap], len);
	len *= 2;
	if (is_whole)
		key[len++] = flow->proto;
	return len;
}

static size_t make_key(uint8_t *key, const struct message_format *format,
		       const struct netobs_record *record)
{
	size_t len = strlen(format->host);

	if (format->key == MESSAGE_KEY_NONE)
		return 0;
	if (format->key != MESSAGE_KEY_HOST && record->type == NETOBS_RECORD_FLOW)
		return make_flow_key(key, format->key, as_flow(record));
	memcpy(key, format->host, len);
	return len;
}

static size_t make_json(uint8_t *value, const struct netobs_record *record)
{
	int len = netobs_record_json(record, (char *)value, RECORD_JSON_MAX);

	assert(len > 0);
	return (size_t)len;
}

int message_make(struct message *message, const struct message_format *format,
		 const struct netobs_record *record)
{
	bool is_json = format->encoding == MESSAGE_JSON;
	uint8_t *value =
		malloc(is_json ? RECORD_JSON_MAX : pbflow_room(as_flow(record)));

	if (!value)
		return -ENOMEM;
	message->key_len = make_key(message->key, format, record);
	message->value_len =
		is_json ? make_json(value, record) :
			  pbflow_record(as_flow(record), &format->pbflow, value);
	/* Many may wait in librdkafka for long. */
	message->value = realloc(value, message->value_len) ?: value;
	return 0;
}
