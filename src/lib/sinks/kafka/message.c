// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The key of a message chooses its partition; records that belong together have the same. */
#include "kafka.h"

#include "base/util.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

/* One end of a flow. */
struct end {
	uint8_t address[16];
	uint16_t port; /* network byte order */
} __attribute__((packed));

/* The key is equal for both directions of a flow: the lesser end comes first. */
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

static size_t make_json(uint8_t *value, const struct message_format *format,
			const struct netobs_record *record)
{
	int len = netobs_record_json(record, (char *)value, RECORD_JSON_MAX);

	assert(len > 0);
	return host_fields_add(&format->host_fields, (char *)value, (size_t)len);
}

static size_t make_value(uint8_t *value, const struct message_format *format,
			 const struct netobs_record *record)
{
	if (format->encoding == MESSAGE_JSON)
		return make_json(value, format, record);
	if (pbnetobs_has(record))
		return pbnetobs_record(record, &format->pbflow, value);
	return pbflow_record(as_flow(record), &format->pbflow, value);
}

size_t message_make(rd_kafka_message_t *ret_message, uint8_t *buf,
		    const struct message_format *format,
		    const struct netobs_record *record)
{
	size_t key_len = make_key(buf, format, record);
	uint8_t *value = buf + key_len;
	size_t len = make_value(value, format, record);

	*ret_message = (rd_kafka_message_t){
		.payload = value,
		.len = len,
		.key = key_len ? buf : NULL,
		.key_len = key_len,
	};
	return key_len + len;
}
