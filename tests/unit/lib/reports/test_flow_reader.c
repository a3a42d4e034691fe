// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A flow that is read from its JSON has all that its JSON says. */
#include "lib_test.h"

#include <errno.h>
#include <string.h>

#include <netobs/flow_reader.h>

static void write_json(const struct netobs_flow *flow,
		       char text[NETOBS_FLOW_JSON_MAX])
{
	assert_true(netobs_flow_json(flow, text, NETOBS_FLOW_JSON_MAX) > 0);
}

TEST(what_is_written_is_read)
{
	static const struct netobs_process process = { .sz = sizeof(process),
						       .pid = 7,
						       .uid = 1000,
						       .command = "curl",
						       .pod_name = "web-0" };
	const struct netobs_point points[] = {
		{ .ifindex = 2, .direction = NETOBS_INGRESS, .name = "eth0" },
		{ .ifindex = 3, .direction = NETOBS_EGRESS, .name = "eth1" },
	};
	const struct netobs_flow flow = {
		.sz = sizeof(flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_XLAT | NETOBS_HAS_TCP,
		.start_ns = 1700000000123000000,
		.end_ns = 1700000001123000000,
		.src = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
		.dst = { [10] = 0xff, [11] = 0xff, [12] = 192, [15] = 9 },
		.src_port = 40000,
		.dst_port = 443,
		.proto = 6,
		.ethertype = 0x86dd,
		.packets = 3,
		.bytes = 1ULL << 40,
		.tcp_flags = 0x1b,
		.xlat_src = { [15] = 3 },
		.xlat_dst = { [15] = 4 },
		.xlat_src_port = 1,
		.xlat_dst_port = 2,
		.conversation_id = 0xfedcba9876543210,
		.n_points = 2,
		.point_size = sizeof(*points),
		.points = points,
		.src_process = &process,
	};
	char written[NETOBS_FLOW_JSON_MAX], again[NETOBS_FLOW_JSON_MAX];
	struct netobs_flow_reader *reader;
	const struct netobs_flow *read;

	assert_int_equal(netobs_flow_reader_new(&reader), 0);
	write_json(&flow, written);
	read = netobs_flow_reader_read(reader, written);
	assert_non_null(read);
	assert_int_equal(read->bytes, flow.bytes);
	assert_int_equal(read->n_points, 2);
	assert_int_equal(read->points[1].direction, NETOBS_EGRESS);
	assert_string_equal(read->src_process->pod_name, "web-0");
	assert_null(read->dst_process);
	write_json(read, again);
	assert_string_equal(again, written);
	/* Nothing of it is left for the next one. */
	read = netobs_flow_reader_read(reader, "{\"Packets\":1}");
	assert_int_equal(read->packets, 1);
	assert_int_equal(read->bytes, 0);
	assert_int_equal(read->n_points, 0);
	assert_null(read->src_process);
	netobs_flow_reader_free(reader);
}

TEST(what_is_no_object_is_refused)
{
	static const char *const wrong[] = { NULL, "", "[1]", "{", "7" };
	struct netobs_flow_reader *reader;

	assert_int_equal(netobs_flow_reader_new(NULL), -EINVAL);
	assert_int_equal(netobs_flow_reader_new(&reader), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_null(netobs_flow_reader_read(reader, wrong[i]));
	assert_null(netobs_flow_reader_read(NULL, "{}"));
	netobs_flow_reader_free(NULL);
	netobs_flow_reader_free(reader);
}
