// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records that are read from JSON: what is written is read again, whatever it is, and text that is no such
 * record is refused. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "record/any.h"

enum { ROUNDS = 300, MUTATIONS = 300, TEXT_MAX = 64 << 10 };

/* ---- Random records ---------------------------------------------------------------- */

struct text_member {
	size_t offset, size;
};

#define TEXT(kind, member)                                             \
	{                                                              \
		offsetof(struct netobs_##kind, member),                \
			sizeof(((struct netobs_##kind *)NULL)->member) \
	}

static const struct text_member share_texts[] = {
	TEXT(queue_share, command),
	TEXT(queue_share, container_id),
};
static const struct text_member texts_of_types[][10] = {
	[NETOBS_RECORD_TURN] = { TEXT(turn, uplink), TEXT(turn, command),
				 TEXT(turn, reader_command),
				 TEXT(turn, container_id), TEXT(turn, drop_cause),
				 TEXT(turn, drop_function), TEXT(turn, alert) },
	[NETOBS_RECORD_QUEUE] = { TEXT(queue, interface), TEXT(queue, command),
				  TEXT(queue, cgroup) },
	[NETOBS_RECORD_HOST] = { TEXT(host, uplink), TEXT(host, host),
				 TEXT(host, kernel) },
	[NETOBS_RECORD_VERDICT] = { TEXT(verdict, client_command),
				    TEXT(verdict, server_command),
				    TEXT(verdict, client_host),
				    TEXT(verdict, server_host),
				    TEXT(verdict, interface),
				    TEXT(verdict, drop_cause),
				    TEXT(verdict, drop_function),
				    TEXT(verdict, cgroup), TEXT(verdict, alert) },
};

/* Whole characters of UTF-8, up to all of the array. */
static void make_text(char *to, size_t size)
{
	static const char *const characters[] = { "a",	"Z",	  " ",
						  "\"", "\\",	  "/",
						  "\n", "\x01",	  "\x7f",
						  "ü",	"\u20ac", "\U0001f600" };
	size_t used = 0;

	memset(to, 0, size);
	while (test_below(20)) {
		const char *one = characters[test_below(ARRAY_SIZE(characters))];

		if (used + strlen(one) > size)
			break;
		memcpy(to + used, one, strlen(one));
		used += strlen(one);
	}
}

/* Many members are 0, and some are as large as can be. */
static void make_bytes(uint8_t *to, size_t size)
{
	for (size_t i = 0; i < size; i += 4) {
		const uint32_t bytes =
			test_below(3) ? test_below(2) * (uint32_t)test_random() :
					test_below(300);

		memcpy(to + i, &bytes, min_u64(size - i, sizeof(bytes)));
	}
}

static void make_shares(struct netobs_queue_share *shares)
{
	for (size_t i = 0; i < NETOBS_QUEUE_SHARES_MAX; i++)
		for (size_t k = 0; k < ARRAY_SIZE(share_texts); k++)
			make_text((char *)&shares[i] + share_texts[k].offset,
				  share_texts[k].size);
}

static void make_verdict(struct netobs_verdict *verdict)
{
	verdict->place = (uint8_t)test_below(NETOBS_PLACES);
	verdict->cause = (uint8_t)test_below(NETOBS_CAUSES);
	verdict->certainty = (uint8_t)test_below(NETOBS_CERTAINTIES);
	verdict->second_place = (uint8_t)test_below(NETOBS_PLACES);
	verdict->second_cause = (uint8_t)test_below(NETOBS_CAUSES);
	verdict->n_shares = (uint16_t)test_below(NETOBS_QUEUE_SHARES_MAX + 1);
	verdict->n_parts = (uint16_t)test_below(NETOBS_VERDICT_PARTS_MAX + 1);
	for (size_t i = 0; i < verdict->n_parts; i++) {
		verdict->parts[i].place = (uint8_t)test_below(NETOBS_PLACES);
		verdict->parts[i].cause = (uint8_t)test_below(NETOBS_CAUSES);
	}
	make_shares(verdict->shares);
}

static void make_record(union any_record *any, enum netobs_record_type type)
{
	static const size_t sizes[] = {
		[NETOBS_RECORD_TURN] = sizeof(struct netobs_turn),
		[NETOBS_RECORD_QUEUE] = sizeof(struct netobs_queue),
		[NETOBS_RECORD_HOST] = sizeof(struct netobs_host),
		[NETOBS_RECORD_VERDICT] = sizeof(struct netobs_verdict),
	};

	make_bytes((uint8_t *)any, sizes[type]);
	any->record.type = type;
	any->record.sz = sizes[type];
	for (size_t i = 0; texts_of_types[type][i].size; i++)
		make_text((char *)any + texts_of_types[type][i].offset,
			  texts_of_types[type][i].size);
	if (type == NETOBS_RECORD_TURN) {
		any->turn.kind = (uint8_t)test_below(NETOBS_TURN_KINDS);
	} else if (type == NETOBS_RECORD_QUEUE) {
		any->queue.kind = (uint8_t)test_below(NETOBS_QUEUE_KINDS);
		any->queue.n_shares =
			(uint16_t)test_below(NETOBS_QUEUE_SHARES_MAX + 1);
		make_shares(any->queue.shares);
	} else if (type == NETOBS_RECORD_VERDICT) {
		make_verdict(&any->verdict);
	}
}

static enum netobs_record_type any_type(void)
{
	return NETOBS_RECORD_TURN + test_below(4);
}

/* ---- Reading ------------------------------------------------------------------------ */

/* From memory that ends with the text, into memory that ends with the struct. */
static int parse(const char *text, union any_record *any)
{
	cleanup_free char *copy = strdup(text);
	cleanup_free union any_record *to = malloc(sizeof(*to));
	int len;

	assert_non_null(copy);
	assert_non_null(to);
	memset(to, 0xa5, sizeof(*to));
	len = netobs_record_parse(copy, to, sizeof(*to));
	if (len > 0) {
		assert_int_equal(len, to->record.sz);
		memcpy(any, to, (size_t)len);
	}
	return len;
}

static size_t write_json(const union any_record *any, char text[TEXT_MAX])
{
	const int len = netobs_record_json(&any->record, text, TEXT_MAX);

	assert_true(len > 0);
	return (size_t)len;
}

TEST(what_is_written_is_read_again)
{
	static char text[TEXT_MAX], again[TEXT_MAX];
	union any_record any, found;

	for (int i = 0; i < ROUNDS; i++) {
		make_record(&any, any_type());
		write_json(&any, text);
		assert_int_equal(parse(text, &found), any.record.sz);
		write_json(&found, again);
		if (strcmp(text, again))
			fail_msg("%s\n%s", text, again);
	}
}

TEST(members_have_their_values)
{
	static const struct netobs_turn expected = {
		.record = { .sz = sizeof(expected),
			    .type = NETOBS_RECORD_TURN,
			    .has = NETOBS_TURN_HAS_READ | NETOBS_TURN_HAS_LIMITS |
				   NETOBS_TURN_HAS_PROCESS,
			    .time_ns = 1700000000123456789 },
		.kind = NETOBS_TURN_SLICE,
		.connection = UINT64_MAX,
		.offset = INT64_MIN,
		.bytes = UINT32_MAX,
		.one_of = 3,
		.protocol = 17,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.dst = { 0x20, 1, 0xd, 0xb8, [15] = 1 },
		.src_port = 65535,
		.out_ns = 1700000000123456790,
		.end_ns = 1700000000123456799,
		.part_ns = { 0, 5 },
		.unknown_parts = 1 << NETOBS_JOURNEY_READER |
				 1 << NETOBS_JOURNEY_GAP,
		.largest_in = UINT32_MAX,
		.limit_ns = { [NETOBS_TURN_QUEUED] = 9 },
		.command = "0123456789abcdef",
		.container_id = "a\"\xe2\x82\xac",
	};
	union any_record found;

	assert_int_equal(
		parse(" { \"Unheard\" : [1, {\"Pid\": 3}], \"TotalNs\":10,\"OutAfterNs\":1,"
		      "\"TimeNs\":1700000000123456789,\"type\":\"turn\",\"TimeMs\":5,"
		      "\"Kind\":\"slice\",\"Connection\":18446744073709551615,"
		      "\"Offset\":-9223372036854775808,\"Bytes\":4294967295,"
		      "\"Sends\":false,\"Reads\":true,\"OneOf\":3,\"Proto\":17,"
		      "\"SrcAddr\":\"10.0.0.2\",\"DstAddr\":\"2001:db8::1\","
		      "\"SrcPort\":65535,\"PartsNs\":[0,5],\"Pid\":0,"
		      "\"UnknownParts\":[\"gap\",\"reader\"],"
		      "\"LimitsNs\":[0,0,0,0,0,9],\"Command\":\"0123456789abcdefghi\","
		      "\"ContainerId\":\"\\u0061\\\"\\u20ac\\u0000x\"} ",
		      &found),
		sizeof(expected));
	assert_memory_equal(&found, &expected, sizeof(expected));
}

/* A typical message of each side: nothing is written twice. */
TEST(what_is_absent_is_restored)
{
	static const struct netobs_turn sender = {
		.record = { .sz = sizeof(sender),
			    .type = NETOBS_RECORD_TURN,
			    .has = NETOBS_TURN_HAS_SEND },
		.bytes = 600,
		.netns_inode = 9,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, 3 },
		.wire_src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.wire_dst = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.src_port = 7,
		.dst_port = 8,
		.wire_src_port = 7,
		.one_of = 1,
		.uplink_ifindex = 2,
		.uplink_netns_inode = 9,
		.sent_bytes = 1200,
		.out_bytes = 1200,
		.largest_sent = 600,
		.tid = 5,
	};
	union any_record found;

	assert_int_equal(
		parse("{\"type\":\"turn\",\"WireDstPort\":0,\"WireDstAddr\":\"192.0.2.1\","
		      "\"Tid\":5,\"SentBytes\":1200,\"UplinkIfIndex\":2,\"SrcPort\":7,"
		      "\"DstPort\":8,\"NetnsInode\":9,\"SrcAddr\":\"10.0.0.2\","
		      "\"DstAddr\":\"10.0.0.3\",\"Bytes\":600,\"Sends\":true}",
		      &found),
		sizeof(sender));
	assert_memory_equal(&found, &sender, sizeof(sender));
}

TEST(lists_have_their_members)
{
	static const struct netobs_verdict expected = {
		.record = { .sz = sizeof(expected),
			    .type = NETOBS_RECORD_VERDICT },
		.place = NETOBS_PLACE_BEYOND,
		.cause = NETOBS_CAUSE_LOSS,
		.certainty = NETOBS_CERTAIN,
		.missing = NETOBS_MISSING_RECORDS,
		.clock_ns = -7,
		.n_parts = 2,
		.parts = { { .now_ns = 1 },
			   { .place = NETOBS_PLACE_NETWORK,
			     .cause = NETOBS_CAUSE_MTU } },
		.n_shares = 1,
		.shares = { { .amount = 5, .command = "iperf3" } },
	};
	union any_record found;

	assert_int_equal(
		parse("{\"type\":\"verdict\",\"Place\":\"beyond\",\"Cause\":\"loss\","
		      "\"Certainty\":\"certain\",\"Missing\":[\"records\"],"
		      "\"ClockNs\":-7,\"Shares\":[{\"Amount\":5,\"Command\":\"iperf3\"}],"
		      "\"Parts\":[{\"NowNs\":1},{\"Place\":\"network\",\"Cause\":\"mtu\"}]}",
		      &found),
		sizeof(expected));
	assert_memory_equal(&found, &expected, sizeof(expected));
}

/* ---- What is refused ---------------------------------------------------------------- */

TEST(values_out_of_range_are_refused)
{
	static const char *const wrong[] = {
		"\"SrcPort\":65536",
		"\"Bytes\":4294967296",
		"\"Connection\":18446744073709551616",
		"\"Offset\":9223372036854775808",
		"\"Offset\":-9223372036854775809",
		"\"Bytes\":-1",
		"\"Bytes\":1.5",
		"\"Bytes\":1e3",
		"\"Bytes\":\"1\"",
		"\"Bytes\":null",
		"\"Bytes\":[1]",
		"\"Pid\":true",
		"\"Sends\":1",
		"\"Kind\":\"slices\"",
		"\"Kind\":\"slic\"",
		"\"Kind\":1",
		"\"Command\":1",
		"\"SrcAddr\":\"10.0.0\"",
		"\"SrcAddr\":\"\"",
		"\"SrcAddr\":1",
		"\"SrcAddr\":\"1111:2222:3333:4444:5555:6666:123.123.123.1234\"",
		"\"PartsNs\":[0,0,0,0,0,0,0,0,0,0,0]",
		"\"PartsNs\":{\"a\":1}",
		"\"PartsNs\":1",
		"\"UnknownParts\":[\"reade\"]",
		"\"UnknownParts\":[1]",
		"\"UnknownParts\":\"gap\"",
		"\"TimeNs\":\"1\"",
	};
	static const char *const lists[] = {
		"\"Shares\":{}", "\"Shares\":[1]", "\"Shares\":[[]]",
		"\"Shares\":[{\"SrcPort\":65536}]",
		"\"Shares\":[{},{},{},{},{},{},{},{},{}]"
	};
	union any_record found;
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof(text), "{\"type\":\"turn\",%s}", wrong[i]);
		if (parse(text, &found) != -EBADMSG)
			fail_msg("%s", text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		snprintf(text, sizeof(text), "{\"type\":\"queue\",%s}", lists[i]);
		if (parse(text, &found) != -EBADMSG)
			fail_msg("%s", text);
	}
}

TEST(arguments_and_types_are_checked)
{
	union any_record any;

	assert_int_equal(netobs_record_parse(NULL, &any, sizeof(any)), -EINVAL);
	assert_int_equal(netobs_record_parse("{}", NULL, 9), -EINVAL);
	assert_int_equal(parse("", &any), -EBADMSG);
	assert_int_equal(parse("[]", &any), -EBADMSG);
	assert_int_equal(parse("{\"type\":\"turn\"}x", &any), -EBADMSG);
	assert_int_equal(parse("{}", &any), -ENOTSUP);
	assert_int_equal(parse("{\"type\":\"flow\"}", &any), -ENOTSUP);
	assert_int_equal(parse("{\"type\":\"turns\"}", &any), -ENOTSUP);
	assert_int_equal(parse("{\"type\":9}", &any), -ENOTSUP);
	assert_int_equal(netobs_record_parse("{\"type\":\"host\"}", &any,
					     sizeof(struct netobs_host) - 1),
			 -ENOBUFS);
	assert_int_equal(netobs_record_parse("{\"type\":\"host\"}", &any,
					     sizeof(struct netobs_host)),
			 sizeof(struct netobs_host));
}

TEST(what_is_cut_is_refused)
{
	static char text[TEXT_MAX];
	union any_record any;

	for (enum netobs_record_type type = NETOBS_RECORD_TURN;
	     type <= NETOBS_RECORD_VERDICT; type++) {
		make_record(&any, type);
		for (size_t len = write_json(&any, text); len--;) {
			text[len] = '\0';
			assert_int_equal(parse(text, &any), -EBADMSG);
		}
	}
}

/* A few bytes are others, are missing, or come twice. */
static void mutate(char *text, size_t len)
{
	static const char likely[] = "\"\\{}[],:0123456789-.eu";

	for (uint32_t n = 1 + test_below(4); n; n--) {
		char *at = text + test_below((uint32_t)len);

		if (test_below(3) == 0)
			*at = (char)(1 + test_below(255));
		else if (test_below(2))
			*at = likely[test_below(sizeof(likely) - 1)];
		else if (*at)
			memmove(at, at + 1, strlen(at));
	}
}

TEST(what_is_damaged_is_refused_or_a_record)
{
	static char text[TEXT_MAX], damaged[TEXT_MAX];
	union any_record any;
	int whole = 0;

	for (int i = 0; i < ROUNDS / 10; i++) {
		size_t len;

		make_record(&any, any_type());
		len = write_json(&any, text);
		for (int k = 0; k < MUTATIONS; k++) {
			int got;

			memcpy(damaged, text, len + 1);
			mutate(damaged, len);
			got = parse(damaged, &any);
			if (got > 0)
				write_json(&any, damaged);
			else
				assert_true(got == -EBADMSG || got == -ENOTSUP);
			whole += got > 0;
		}
	}
	assert_in_range(whole, 1, ROUNDS / 10 * MUTATIONS - 1);
}
