// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "message.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

_Static_assert((int)PBFLOW_RECORD_MAX <= (int)MESSAGE_VALUE_MAX &&
		       PACK_POINTS_MAX * (6 * PACK_NAME_MAX + 30) +
				       NETOBS_FLOW_JSON_MAX <=
			       MESSAGE_VALUE_MAX,
	       "any record fits");

/* One end of a flow. */
struct end {
	uint8_t address[16];
	uint16_t port; /* network byte order */
} __attribute__((packed));

static struct end end_of(const uint8_t address[16], uint16_t port)
{
	struct end end = { .port = htons(port) };

	memcpy(end.address, address, sizeof(end.address));
	return end;
}

/* The first @len bytes of both, the lesser first: the same in both directions. */
static size_t put_ordered(uint8_t *key, const struct end *a,
			  const struct end *b, size_t len)
{
	bool swap = memcmp(a, b, len) > 0;

	memcpy(key, swap ? b : a, len);
	memcpy(key + len, swap ? a : b, len);
	return 2 * len;
}

static size_t make_flow_key(uint8_t *key, enum message_key kind,
			    const struct netobs_flow *flow)
{
	bool has_ports = flow->has & NETOBS_HAS_PORTS;
	struct end src = end_of(flow->src, has_ports ? flow->src_port : 0);
	struct end dst = end_of(flow->dst, has_ports ? flow->dst_port : 0);
	size_t len;

	if (kind == MESSAGE_KEY_ADDRESSES)
		return put_ordered(key, &src, &dst, sizeof(src.address));
	len = put_ordered(key, &src, &dst, sizeof(src));
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
	int len = netobs_record_json(record, (char *)value, MESSAGE_VALUE_MAX);

	assert(len > 0);
	return (size_t)len;
}

void message_make(struct message *message, const struct message_format *format,
		  const struct netobs_record *record)
{
	message->key_len = make_key(message->key, format, record);
	if (format->encoding == MESSAGE_JSON)
		message->value_len = make_json(message->value, record);
	else
		message->value_len = pbflow_record(
			as_flow(record), &format->pbflow, message->value);
}
