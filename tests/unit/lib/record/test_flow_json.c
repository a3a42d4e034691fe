/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include <netobs/flow.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_POINTS = 16 };

static const struct netobs_point forwarded[] = {
	{ .ifindex = 2,
	  .netns_inode = 7,
	  .direction = NETOBS_INGRESS,
	  .name = "eth0" },
	{ .ifindex = 3, .netns_inode = 7, .direction = NETOBS_EGRESS, .name = "eth1" },
};

/* UDP over IPv4 without anything optional. */
static struct netobs_flow plain_flow(void)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.point_size = sizeof(struct netobs_point),
		.start_ns = 1700000000123999999,
		.end_ns = 1700000001000000000,
		.packets = 3,
		.bytes = 4500,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff, 0xff, 192, 168, 255, 200 },
		.ethertype = 0x0800,
		.proto = 17,
		.dscp = 46,
		.ecn_seen = 1,
		.ttl_min = 63,
		.ttl_max = 64,
		.end_reason = NETOBS_END_IDLE,
	};
}

static const char *json_of(const struct netobs_flow *flow)
{
	static char text[NETOBS_FLOW_JSON_MAX];
	int len = netobs_flow_json(flow, text, sizeof(text));

	assert_int_equal(len, strlen(text));
	return text;
}

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("%s\nlacks %s", text, part);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("%s\nshould not have %s", text, part);
}

TEST(plain_flow_has_the_known_fields_and_no_others)
{
	struct netobs_flow flow = plain_flow();

	assert_string_equal(
		json_of(&flow),
		"{\"TimeFlowStartMs\":1700000000123,"
		"\"TimeFlowEndMs\":1700000001000,"
		"\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.168.255.200\","
		"\"Proto\":17,\"Etype\":2048,\"Bytes\":4500,\"Packets\":3,"
		"\"Dscp\":46,\"EcnSeen\":1,\"TtlMin\":63,\"TtlMax\":64,"
		"\"FlowEndReason\":1}");
}

/* unit.fields shows that each follows its bit. */
TEST(optional_fields_have_their_forms)
{
	struct netobs_flow flow = plain_flow();

	flow.has = NETOBS_HAS_PORTS | NETOBS_HAS_ICMP | NETOBS_HAS_TCP |
		   NETOBS_HAS_MAC | NETOBS_HAS_VLAN | NETOBS_HAS_OUTER_VLAN |
		   NETOBS_HAS_TUNNEL | NETOBS_HAS_OUTER | NETOBS_HAS_VNI |
		   NETOBS_HAS_OUTER_PORTS;
	flow.src_port = 65535;
	flow.icmp_type = 255;
	flow.icmp_code = 9;
	flow.tcp_flags = 0x112;
	flow.l2_bytes = 5000;
	memcpy(flow.src_mac, "\x00\x1a\x2b\x3c\x4d\xff", 6);
	memset(flow.dst_mac, 0xff, 6);
	flow.outer_vlan_id = 4095;
	flow.tunnel = NETOBS_TUNNEL_GENEVE;
	memcpy(flow.outer_src, "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	memcpy(flow.outer_dst, "\0\0\0\0\0\0\0\0\0\0\xff\xff\1\2\3\4", 16);
	flow.vni = 0xffffff;
	flow.outer_src_port = 50000;
	flow.outer_dst_port = 6081;
	assert_string_equal(
		json_of(&flow),
		"{\"TimeFlowStartMs\":1700000000123,"
		"\"TimeFlowEndMs\":1700000001000,"
		"\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.168.255.200\","
		"\"SrcPort\":65535,\"DstPort\":0,\"Proto\":17,\"Etype\":2048,"
		"\"IcmpType\":255,\"IcmpCode\":9,\"Bytes\":4500,\"Packets\":3,"
		"\"L2Bytes\":5000,\"Flags\":274,\"TcpCombined\":0,\"Dscp\":46,"
		"\"EcnSeen\":1,\"TtlMin\":63,\"TtlMax\":64,\"FlowEndReason\":1,"
		"\"SrcMac\":\"00:1a:2b:3c:4d:ff\",\"DstMac\":\"ff:ff:ff:ff:ff:ff\","
		"\"VlanId\":0,\"OuterVlanId\":4095,\"TunnelType\":\"geneve\","
		"\"OuterSrcAddr\":\"fe80::1\",\"OuterDstAddr\":\"1.2.3.4\","
		"\"OuterSrcPort\":50000,\"OuterDstPort\":6081,\"Vni\":16777215}");
}

TEST(tunnel_types_have_their_names)
{
	static const char *const names[] = {
		[NETOBS_TUNNEL_VXLAN] = "\"TunnelType\":\"vxlan\"",
		[NETOBS_TUNNEL_GENEVE] = "\"TunnelType\":\"geneve\"",
		[NETOBS_TUNNEL_GRE] = "\"TunnelType\":\"gre\"",
		[NETOBS_TUNNEL_IPIP] = "\"TunnelType\":\"ipip\"",
		[NETOBS_TUNNEL_GTPU] = "\"TunnelType\":\"gtpu\"",
		[NETOBS_TUNNEL_SRV6] = "\"TunnelType\":\"srv6\"",
		[NETOBS_TUNNEL_ERSPAN] = "\"TunnelType\":\"erspan\"",
	};
	struct netobs_flow flow = plain_flow();

	flow.has = NETOBS_HAS_TUNNEL;
	for (unsigned int i = NETOBS_TUNNEL_VXLAN; i < LENGTH(names); i++) {
		flow.tunnel = (uint8_t)i;
		assert_contains(json_of(&flow), names[i]);
	}
	flow.tunnel = LENGTH(names);
	assert_lacks(json_of(&flow), "TunnelType");
}

TEST(times_before_1970_round_down)
{
	struct netobs_flow flow = plain_flow();

	flow.start_ns = -1;
	flow.end_ns = -1000000;
	assert_contains(json_of(&flow),
			"{\"TimeFlowStartMs\":-1,\"TimeFlowEndMs\":-1,");
}

TEST(points_are_parallel_arrays)
{
	struct netobs_flow flow = plain_flow();

	flow.points = forwarded;
	flow.n_points = LENGTH(forwarded);
	assert_contains(json_of(&flow),
			"\"Interfaces\":[\"eth0\",\"eth1\"],"
			"\"IfDirections\":[0,1],\"IfIndexes\":[2,3],"
			"\"NetnsInode\":7}");
}

TEST(namespaces_are_a_list_only_when_they_differ)
{
	struct netobs_point points[2] = { forwarded[0], forwarded[1] };
	struct netobs_flow flow = plain_flow();

	flow.points = points;
	flow.n_points = LENGTH(points);
	points[1].netns_inode = 8;
	assert_contains(json_of(&flow), "\"NetnsInodes\":[7,8]}");
	assert_lacks(json_of(&flow), "\"NetnsInode\":");

	points[0].netns_inode = points[1].netns_inode = 0;
	assert_lacks(json_of(&flow), "Netns");
}

TEST(interface_names_are_escaped)
{
	static const struct {
		const char *name, *json;
	} cases[] = {
		{ "a\"b\\c", "[\"a\\\"b\\\\c\"]" },
		{ "\x01\x1f\x7f", "[\"\\u0001\\u001f\\u007f\"]" },
		{ "caf\xc3\xa9", "[\"caf\xc3\xa9\"]" },
		{ "\xe2\x86\x92", "[\"\xe2\x86\x92\"]" },
		{ "\xf0\x9f\x90\x9d", "[\"\xf0\x9f\x90\x9d\"]" },
		{ "x\xff", "[\"x\xef\xbf\xbd\"]" },
		{ "\xc3", "[\"\xef\xbf\xbd\"]" }, /* cut short */
		{ "\xc0\x80", "[\"\xef\xbf\xbd\xef\xbf\xbd\"]" }, /* overlong */
		{ "\xed\xa0\x80", /* a surrogate */
		  "[\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]" },
	};
	struct netobs_point point = forwarded[0];
	struct netobs_flow flow = plain_flow();

	flow.points = &point;
	flow.n_points = 1;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		point.name = cases[i].name;
		assert_contains(json_of(&flow), cases[i].json);
	}
}

/* The longest name is 15 bytes, and a control character takes six in JSON. */
TEST(the_longest_record_of_16_points_fits_the_promised_size)
{
	struct netobs_point points[MAX_POINTS];
	struct netobs_flow flow = plain_flow();

	for (uint32_t i = 0; i < MAX_POINTS; i++)
		points[i] = (struct netobs_point){
			.ifindex = UINT32_MAX,
			.netns_inode = UINT32_MAX - i,
			.direction = NETOBS_EGRESS,
			.name = "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1",
		};
	flow.points = points;
	flow.n_points = MAX_POINTS;
	flow.has = UINT32_MAX;
	flow.start_ns = flow.end_ns = INT64_MIN;
	flow.packets = flow.bytes = flow.l2_bytes = UINT64_MAX;
	flow.tunnel = NETOBS_TUNNEL_GENEVE;
	memset(flow.src, 0xee, sizeof(flow.src));
	memset(flow.dst, 0xee, sizeof(flow.dst));
	memset(flow.outer_src, 0xee, sizeof(flow.outer_src));
	memset(flow.outer_dst, 0xee, sizeof(flow.outer_dst));
	assert_contains(json_of(&flow),
			"\"NetnsInodes\":[4294967295,4294967294,");
}

TEST(every_size_that_is_too_small_is_refused_and_not_overrun)
{
	char whole[NETOBS_FLOW_JSON_MAX], cut[NETOBS_FLOW_JSON_MAX];
	struct netobs_flow flow = plain_flow();
	int len;

	flow.has = UINT32_MAX;
	flow.points = forwarded;
	flow.n_points = LENGTH(forwarded);
	len = netobs_flow_json(&flow, whole, sizeof(whole));
	assert_true(len > 0);

	for (size_t size = 0; size <= (size_t)len; size++) {
		memset(cut, '#', sizeof(cut));
		assert_int_equal(netobs_flow_json(&flow, cut, size), -ENOBUFS);
		for (size_t i = size; i <= (size_t)len; i++)
			assert_int_equal(cut[i], '#');
	}
	assert_int_equal(netobs_flow_json(&flow, cut, (size_t)len + 1), len);
	assert_string_equal(cut, whole);
}

TEST(missing_arguments_are_refused)
{
	struct netobs_flow flow = plain_flow();
	char text[16];

	assert_int_equal(netobs_flow_json(NULL, text, sizeof(text)), -EINVAL);
	assert_int_equal(netobs_flow_json(&flow, NULL, 0), -EINVAL);
}
