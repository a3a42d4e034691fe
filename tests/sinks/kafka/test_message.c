// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Keys: what belongs together has the same one. */
#include "lib_test.h"

#include "sinks/kafka/kafka.h"

static rd_kafka_message_t message;
static uint8_t bytes[MESSAGE_MAX];

static void make(const struct message_format *format,
		 const struct netobs_record *record)
{
	const size_t used = message_make(&message, bytes, format, record);

	assert_int_equal(used, message.key_len + message.len);
}

static struct netobs_flow make_flow(uint8_t from, uint16_t port, uint8_t to,
				    uint16_t to_port)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, from },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, to },
		.src_port = port,
		.dst_port = to_port,
		.ethertype = 0x0800,
		.proto = 6,
	};
}

struct key {
	size_t len;
	uint8_t bytes[MESSAGE_KEY_MAX];
};

static struct key key_of(enum message_key kind, const struct netobs_flow *flow)
{
	const struct message_format format = { .key = kind, .host = "gateway" };
	struct key key = { 0 };

	make(&format, &flow->record);
	key.len = message.key_len;
	if (key.len)
		memcpy(key.bytes, message.key, key.len);
	return key;
}

static bool is_same(struct key a, struct key b)
{
	return a.len == b.len && !memcmp(a.bytes, b.bytes, a.len);
}

TEST(addresses_are_in_order)
{
	struct netobs_flow there = make_flow(1, 40000, 2, 80);
	struct netobs_flow back = make_flow(2, 80, 1, 40000);
	struct netobs_flow other = make_flow(1, 40001, 2, 443);
	struct key key = key_of(MESSAGE_KEY_ADDRESSES, &there);

	assert_int_equal(key.len, 32);
	assert_memory_equal(key.bytes, there.src, 16);
	assert_memory_equal(key.bytes + 16, there.dst, 16);
	assert_true(is_same(key, key_of(MESSAGE_KEY_ADDRESSES, &back)));
	assert_true(is_same(key, key_of(MESSAGE_KEY_ADDRESSES, &other)));
}

TEST(flows_have_keys_of_their_own)
{
	struct netobs_flow there = make_flow(1, 40000, 2, 80);
	struct netobs_flow back = make_flow(2, 80, 1, 40000);
	struct netobs_flow others[] = {
		make_flow(1, 40001, 2, 80), make_flow(1, 80, 2, 40000),
		make_flow(1, 40000, 3, 80), make_flow(1, 40000, 2, 80),
		make_flow(1, 40000, 2, 80),
	};
	struct key key = key_of(MESSAGE_KEY_FLOW, &there);

	others[3].proto = 17;
	others[4].has = 0;
	assert_int_equal(key.len, 37);
	assert_true(is_same(key, key_of(MESSAGE_KEY_FLOW, &back)));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(is_same(key, key_of(MESSAGE_KEY_FLOW, &others[i])));
}

TEST(both_ends_may_have_one_address)
{
	struct netobs_flow there = make_flow(1, 40000, 1, 80);
	struct netobs_flow back = make_flow(1, 80, 1, 40000);

	assert_true(is_same(key_of(MESSAGE_KEY_FLOW, &there),
			    key_of(MESSAGE_KEY_FLOW, &back)));
}

TEST(host_and_none)
{
	struct netobs_flow flow = make_flow(1, 40000, 2, 80);
	struct key key = key_of(MESSAGE_KEY_HOST, &flow);

	assert_int_equal(key.len, strlen("gateway"));
	assert_memory_equal(key.bytes, "gateway", key.len);
	assert_int_equal(key_of(MESSAGE_KEY_NONE, &flow).len, 0);
}

TEST(json_is_that_of_a_line)
{
	const struct message_format format = { .encoding = MESSAGE_JSON,
					       .key = MESSAGE_KEY_NONE };
	struct netobs_flow flow = make_flow(1, 40000, 2, 80);
	char text[NETOBS_FLOW_JSON_MAX];
	int len = netobs_flow_json(&flow, text, sizeof(text));

	make(&format, &flow.record);
	assert_int_equal(message.len, len);
	assert_memory_equal(message.payload, text, message.len);
}

/* Statistics belong to no flow. */
TEST(statistics_have_the_host_as_key)
{
	const struct netobs_stats_record stats = {
		.record = { .sz = sizeof(stats), .type = NETOBS_RECORD_STATS },
	};
	struct message_format format = { .encoding = MESSAGE_JSON,
					 .host = "gateway" };

	for (int key = 0; key <= MESSAGE_KEY_NONE; key++) {
		format.key = (enum message_key)key;
		make(&format, &stats.record);
		assert_int_equal(message.key_len,
				 key == MESSAGE_KEY_NONE ? 0 : 7);
		if (message.key_len)
			assert_memory_equal(message.key, "gateway", 7);
		assert_memory_equal(message.payload, "{\"type\":\"stats\",", 16);
	}
}

TEST(other_records_are_those_of_their_schema)
{
	const struct netobs_session session = {
		.record = { .sz = sizeof(session), .type = NETOBS_RECORD_SESSION },
		.bytes_sent = 1 << 20,
	};
	const struct netobs_alert alert = {
		.record = { .sz = sizeof(alert), .type = NETOBS_RECORD_ALERT },
		.rule = "rtt > 50ms",
	};
	static struct netobs_journey journey = {
		.record = { .sz = sizeof(journey), .type = NETOBS_RECORD_JOURNEY },
		.n_steps = NETOBS_JOURNEY_STEPS_MAX,
	};
	const struct netobs_record *const records[] = { &session.record,
							&alert.record,
							&journey.record };
	const struct message_format format = { .encoding = MESSAGE_PROTOBUF,
					       .host = "gateway" };

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		uint8_t expected[PBNETOBS_RECORD_MAX];
		size_t len =
			pbnetobs_record(records[i], &format.pbflow, expected);

		make(&format, records[i]);
		assert_int_equal(message.len, len);
		assert_memory_equal(message.payload, expected, len);
		assert_int_equal(message.key_len, 7);
	}
}
