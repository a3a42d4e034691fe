// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records of callers with structs that are smaller or larger than the library's. */
#include "record/any.h"
#include "lib_test.h"

/* A point of a later library, which knows more. */
struct later_point {
	struct netobs_point point;
	uint64_t more[3];
};

struct later_flow {
	struct netobs_flow flow;
	uint64_t more[5];
};

static const struct later_point later_points[] = {
	{ .point = { .ifindex = 2, .netns_inode = 7, .name = "eth0" },
	  .more = { 1, 2, 3 } },
	{ .point = { .ifindex = 3, .netns_inode = 8, .direction = NETOBS_EGRESS },
	  .more = { 4, 5, 6 } },
	{ .point = { .ifindex = 4, .netns_inode = 8, .name = "" } },
};

static struct netobs_flow make_flow(void)
{
	return (struct netobs_flow){
		.sz = sizeof(struct later_flow),
		.packets = 3,
		.bytes = 300,
		.proto = 17,
		.ethertype = 0x0800,
		.n_points = ARRAY_SIZE(later_points),
		.point_size = sizeof(later_points[0]),
		.points = &later_points[0].point,
	};
}

TEST(points_are_found_by_their_stride)
{
	const struct netobs_flow flow = make_flow();

	for (uint32_t i = 0; i < flow.n_points; i++)
		assert_ptr_equal(netobs_flow_point(&flow, i),
				 &later_points[i].point);
	assert_null(netobs_flow_point(&flow, flow.n_points));
	assert_null(netobs_flow_point(&flow, UINT32_MAX));
	assert_null(netobs_flow_point(NULL, 0));
}

TEST(json_reads_larger_structs)
{
	const struct later_flow later = { .flow = make_flow() };
	char text[NETOBS_FLOW_JSON_MAX];

	assert_true(netobs_flow_json(&later.flow, text, sizeof(text)) > 0);
	assert_non_null(
		strstr(text, "\"Interfaces\":[\"eth0\",\"unknown\",\"\"]"));
	assert_non_null(strstr(text, "\"IfIndexes\":[2,3,4]"));
	assert_non_null(strstr(text, "\"NetnsInodes\":[7,8,8]"));
}

/* The first release's struct, at the end of what may be read. */
TEST(json_reads_no_more_than_the_caller_has)
{
	volatile size_t sz =
		offsetof(struct netobs_flow, points) + sizeof(void *);
	const struct netobs_flow whole = make_flow();
	struct netobs_flow *flow = malloc(sz);
	char text[NETOBS_FLOW_JSON_MAX];

	memcpy(flow, &whole, sz);
	flow->sz = sz;
	flow->has |= NETOBS_HAS_FLOW_LABEL; /* copied from a library's record */
	assert_true(netobs_flow_json(flow, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"Packets\":3"));
	assert_null(strstr(text, "Ipv6FlowLabel"));
	free(flow);
}

TEST(sizes_that_cannot_be_are_refused)
{
	char text[NETOBS_FLOW_JSON_MAX];
	struct netobs_flow flow, *copy = NULL;

	for (int i = 0; i < 5; i++) {
		flow = make_flow();
		if (i < 3)
			flow.sz = (const size_t[]){ 0, 8, 100 }[i];
		else if (i == 3)
			flow.point_size = 0;
		else
			flow.points = NULL;
		assert_int_equal(netobs_flow_json(&flow, text, sizeof(text)),
				 -EINVAL);
		assert_int_equal(netobs_flow_dup(&flow, &copy), -EINVAL);
		assert_null(copy);
	}
}

TEST(copies_have_everything_of_their_own)
{
	char name[] = "eth0", before[NETOBS_FLOW_JSON_MAX], after[sizeof(before)];
	struct netobs_point points[] = { { .ifindex = 2, .name = name },
					 { .ifindex = 3 } };
	struct netobs_flow flow = make_flow(), *copy;

	flow.sz = sizeof(flow);
	flow.points = points;
	flow.n_points = ARRAY_SIZE(points);
	flow.point_size = sizeof(points[0]);
	assert_true(netobs_flow_json(&flow, before, sizeof(before)) > 0);
	assert_int_equal(netobs_flow_dup(&flow, &copy), 0);
	memset(name, 'x', sizeof(name) - 1);
	memset(points, 0xee, sizeof(points));
	memset(&flow, 0xee, sizeof(flow));
	assert_int_equal(copy->sz, sizeof(*copy));
	assert_int_equal(copy->point_size, sizeof(points[0]));
	assert_null(netobs_flow_point(copy, 1)->name);
	assert_true(netobs_flow_json(copy, after, sizeof(after)) > 0);
	assert_string_equal(after, before);
	free(copy); /* one allocation */
}

TEST(copies_are_of_the_librarys_size)
{
	const struct later_flow later = { .flow = make_flow() };
	struct netobs_flow *copy;

	assert_int_equal(netobs_flow_dup(&later.flow, &copy), 0);
	assert_int_equal(copy->sz, sizeof(*copy));
	assert_int_equal(copy->point_size, sizeof(struct netobs_point));
	assert_int_equal(netobs_flow_point(copy, 2)->ifindex, 4);
	assert_string_equal(netobs_flow_point(copy, 0)->name, "eth0");
	netobs_flow_free(copy);

	netobs_flow_free(NULL);
	assert_int_equal(netobs_flow_dup(NULL, &copy), -EINVAL);
	assert_int_equal(netobs_flow_dup(&later.flow, NULL), -EINVAL);
}

TEST(copies_without_points_are_made)
{
	struct netobs_flow flow = { .sz = sizeof(flow), .packets = 9 }, *copy;

	assert_int_equal(netobs_flow_dup(&flow, &copy), 0);
	assert_int_equal(copy->packets, 9);
	assert_null(copy->points);
	netobs_flow_free(copy);
}

TEST(addresses_are_written)
{
	static const struct {
		uint8_t addr[16];
		const char *text;
	} cases[] = {
		{ { [10] = 0xff, 0xff, 192, 0, 2, 1 }, "192.0.2.1" },
		{ { [10] = 0xff, 0xff, 255, 255, 255, 255 }, "255.255.255.255" },
		{ { [10] = 0xff, 0xff, 0, 10, 100, 9 }, "0.10.100.9" },
		{ { 0 }, "::" },
		{ { [15] = 1 }, "::1" },
		{ { [10] = 0xff, 0xff, 0, 0, 0, 0 }, "0.0.0.0" },
		{ { 0x20, 1, 0xd, 0xb8, [15] = 1 }, "2001:db8::1" },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		    0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	char text[NETOBS_ADDR_STR_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int len = (int)strlen(cases[i].text);

		assert_int_equal(
			netobs_addr_str(cases[i].addr, text, sizeof(text)), len);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(netobs_addr_str(cases[i].addr, text,
						 (size_t)len + 1),
				 len);
		assert_int_equal(netobs_addr_str(cases[i].addr, text, (size_t)len),
				 -ENOBUFS);
		assert_int_equal(netobs_addr_str(cases[i].addr, text, 0),
				 -ENOBUFS);
	}
	assert_int_equal(netobs_addr_str(NULL, text, sizeof(text)), -EINVAL);
	assert_int_equal(netobs_addr_str(cases[0].addr, NULL, 1), -EINVAL);
}

/* Each number up to the last has a name, which no other has, and the next one has none. */
TEST(numbers_have_names_of_their_own)
{
	static const struct {
		const char *(*name_of)(unsigned int number);
		unsigned int n, example;
		const char *name; /* of the example */
	} kinds[] = {
		{ netobs_unparsed_name, NETOBS_UNPARSED_REASONS, 0, "short" },
		{ netobs_lost_name, NETOBS_LOST_REASONS, 0, "table_full" },
		{ netobs_journey_part_name, NETOBS_JOURNEY_PARTS,
		  NETOBS_JOURNEY_GAP, "gap" },
		{ netobs_trace_layer_name, NETOBS_TRACE_LAYERS,
		  NETOBS_TRACE_LAYER_SOCKET, "socket" },
		{ netobs_trace_point_name, NETOBS_TRACE_POINTS,
		  NETOBS_TRACE_SEND, "send" },
		{ netobs_turn_kind_name, NETOBS_TURN_KINDS, NETOBS_TURN_SLICE,
		  "slice" },
		{ netobs_queue_kind_name, NETOBS_QUEUE_KINDS, NETOBS_QUEUE_CPU,
		  "cpu" },
		{ netobs_verdict_place_name, NETOBS_PLACES, NETOBS_PLACE_NONE,
		  "none" },
		{ netobs_verdict_cause_name, NETOBS_CAUSES, NETOBS_CAUSE_LINK,
		  "link" },
		{ netobs_certainty_name, NETOBS_CERTAINTIES, NETOBS_NOT_SURE,
		  "not sure" },
		{ netobs_drop_kind_name, NETOBS_DROP_KINDS, NETOBS_DROP_LOSS,
		  "loss" },
		{ netobs_drop_layer_name, NETOBS_DROP_LAYERS,
		  NETOBS_DROP_LAYER_TC, "tc" },
		{ netobs_session_ended_name, NETOBS_SESSION_ENDINGS,
		  NETOBS_SESSION_OPEN, "open" },
		{ netobs_session_by_name, NETOBS_SESSION_BY_KINDS,
		  NETOBS_SESSION_BY_HOLDING, "holding" },
	};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (unsigned int i = 0; i < kinds[k].n; i++) {
			const char *name = kinds[k].name_of(i);

			if (!name)
				fail_msg("kind %zu: %u", k, i);
			for (unsigned int j = 0; j < i; j++)
				assert_string_not_equal(name,
							kinds[k].name_of(j));
		}
		assert_string_equal(kinds[k].name_of(kinds[k].example),
				    kinds[k].name);
		assert_null(kinds[k].name_of(kinds[k].n));
		assert_null(kinds[k].name_of(UINT32_MAX));
	}
}

TEST(versions_agree)
{
	char text[32];
	unsigned int number = netobs_version_number();

	snprintf(text, sizeof(text), "%u.%u.%u", number >> 16,
		 number >> 8 & 0xff, number & 0xff);
	assert_string_equal(text, netobs_version());
	assert_int_equal(number, NETOBS_VERSION_NUMBER);
}
