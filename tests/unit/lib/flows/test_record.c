// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* From a flow to the public record. */
#include "lib_test.h"
#include "lib_world.h"
#include "flows/merge.h"

static const struct volume delta = { 3, 300, 342 };

enum kind {
	PLAIN,
	TCP,
	TCP_SERVER,
	TCP_WITHOUT_FLAGS,
	TCP_CUT_OFF,
	TCP_CUT_OFF_AT_TIMES,
	TCP_WITHOUT_HEADER,
	UDP_MARKED,
	ICMP,
	ICMP6,
	ICMP_IN_IPV6,
	ICMP6_IN_IPV4,
	ICMP_WITHOUT_HEADER,
	SCTP,
	DCCP,
	UDPLITE,
	ESP,
	WITH_MAC,
	WITH_VLAN,
	WITH_VLAN_0,
	WITH_TWO_VLANS,
	IN_VXLAN,
	IN_VXLAN_OF_UNKNOWN_ENDS,
	IN_GENEVE,
	IN_GRE,
	IN_GRE_WITH_KEY,
	IN_IPIP,
	KINDS
};

#define PORTS NETOBS_HAS_PORTS
#define TUNNEL (PORTS | NETOBS_HAS_TUNNEL)
#define UDP_TUNNEL (TUNNEL | NETOBS_HAS_OUTER_PORTS | NETOBS_HAS_VNI)
#define UDP_ENDS .src_port = 40000, .dst_port = 4789
#define OUTER_ENDS                                                      \
	.has_addrs = true, .addrs = { .src = { .bytes = { [15] = 9 } }, \
				      .dst = { .bytes = { [15] = 8 } } }

/* The differences from a plain UDP flow over IPv4, and the fields of its record. */
static const struct {
	uint64_t has;
	uint8_t proto; /* 0: UDP */
	uint8_t flags;
	uint16_t dst_port; /* of ICMP: type and code */
	uint16_t vlan, outer_vlan;
	bool has_mac;
	struct flow_attrs attrs;
	struct flow_tunnel tunnel;
} kinds[KINDS] = {
	[PLAIN] = { .has = PORTS },
	[TCP] = { PORTS | NETOBS_HAS_TCP, 6, .attrs.marks = 0xffff },
	/* Both, but not in one packet. */
	[TCP_SERVER] = { PORTS | NETOBS_HAS_TCP, 6,
			 .attrs.marks = 0x013 | MARK_SYN_ACK },
	[TCP_WITHOUT_FLAGS] = { .has = PORTS | NETOBS_HAS_TCP, 6 },
	/* All that was seen of it were first fragments of 8 bytes. */
	[TCP_CUT_OFF] = { PORTS, 6, .attrs.marks = MARK_NO_TCP_FLAGS },
	[TCP_CUT_OFF_AT_TIMES] = { PORTS | NETOBS_HAS_TCP, 6,
				   .attrs.marks = MARK_NO_TCP_FLAGS | 0x10 },
	/* Ports, flags and the like were in a fragment that was not seen. */
	[TCP_WITHOUT_HEADER] = { .has = 0, 6, KEY_NO_TRANSPORT },
	[UDP_MARKED] = { PORTS | NETOBS_HAS_FLOW_LABEL,
			 .attrs = { .marks = 1 << (MARK_ECN_SHIFT + 2),
				    .dscp = 46,
				    .flow_label = 0xbeef5,
				    .ttl_min = 1,
				    .ttl_max = 255 } },
	[ICMP] = { .has = NETOBS_HAS_ICMP, 1, 0, 3 << 8 | 13 },
	[ICMP6] = { .has = NETOBS_HAS_ICMP, 58, KEY_IPV6, 128 << 8 },
	/* Protocol numbers that mean nothing in the other IP version. */
	[ICMP_IN_IPV6] = { .has = 0, 1, KEY_IPV6 },
	[ICMP6_IN_IPV4] = { .has = 0, 58 },
	[ICMP_WITHOUT_HEADER] = { .has = 0, 1, KEY_NO_TRANSPORT, 3 << 8 | 13 },
	[SCTP] = { .has = PORTS, 132 },
	[DCCP] = { .has = PORTS, 33 },
	[UDPLITE] = { .has = PORTS, 136 },
	[ESP] = { .has = 0, 50 },
	[WITH_MAC] = { PORTS | NETOBS_HAS_MAC, .has_mac = true },
	[WITH_VLAN] = { PORTS | NETOBS_HAS_VLAN, .vlan = VLAN_PRESENT | 4095 },
	[WITH_VLAN_0] = { PORTS | NETOBS_HAS_VLAN, .vlan = VLAN_PRESENT },
	[WITH_TWO_VLANS] = { PORTS | NETOBS_HAS_VLAN | NETOBS_HAS_OUTER_VLAN,
			     .vlan = VLAN_PRESENT | 10,
			     .outer_vlan = VLAN_PRESENT | 20 },
	[IN_VXLAN] = { UDP_TUNNEL | NETOBS_HAS_OUTER,
		       .tunnel = { TUNNEL_VXLAN, UDP_ENDS, OUTER_ENDS } },
	/* The kernel has forgotten the addresses. */
	[IN_VXLAN_OF_UNKNOWN_ENDS] = { UDP_TUNNEL,
				       .tunnel = { TUNNEL_VXLAN, UDP_ENDS } },
	[IN_GENEVE] = { UDP_TUNNEL | NETOBS_HAS_OUTER,
			.tunnel = { TUNNEL_GENEVE, UDP_ENDS, OUTER_ENDS,
				    .vni = 0xabcdef } },
	[IN_GRE] = { TUNNEL, .tunnel = { .type = TUNNEL_GRE } },
	[IN_GRE_WITH_KEY] = { TUNNEL | NETOBS_HAS_VNI,
			      .tunnel = { TUNNEL_GRE, .vni = 0xdeadbeef } },
	[IN_IPIP] = { TUNNEL, .tunnel = { .type = TUNNEL_IPIP } },
};

static struct netobs_flow record_of(enum kind kind)
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 0 } };
	const struct clock clock = { .kind = CLOCK_HOST, .wall_offset = 1000 };
	struct flow_key key = world_key(0, 0, false);
	struct record record = { 0 };
	struct netobs_flow out;
	struct host host;
	struct flow flow;

	key.proto = kinds[kind].proto ?: 17;
	key.flags = kinds[kind].flags;
	if (kinds[kind].dst_port || kinds[kind].flags & KEY_NO_TRANSPORT) {
		key.src_port = 0;
		key.dst_port = kinds[kind].dst_port;
	}
	key.vlan = kinds[kind].vlan;
	key.outer_vlan = kinds[kind].outer_vlan;
	world_build(&host, 1, links);
	flow_init(&flow, &key);
	flow.first_ns = 5;
	flow.last_ns = 7;
	flow.has_mac = kinds[kind].has_mac;
	memcpy(flow.macs, "\2\0\0\0\0\2\2\0\0\0\0\1", 12);
	flow.attrs = kinds[kind].attrs;
	flow.tunnel = kinds[kind].tunnel;
	assert_int_equal(record_fill(&record, &flow, &delta, NETOBS_END_IDLE,
				     &host, &clock),
			 0);
	out = record.flow;
	out.points = NULL;
	record_done(&record);
	flow_done(&flow);
	host_done(&host);
	return out;
}

TEST(record_says_which_fields_it_has)
{
	for (int kind = PLAIN; kind < KINDS; kind++) {
		const struct netobs_flow flow = record_of(kind);

		if (flow.has != kinds[kind].has)
			fail_msg("kind %d: %jx", kind, (uintmax_t)flow.has);
	}
}

TEST(record_of_a_plain_flow)
{
	static const uint8_t src[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const uint8_t dst[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
	struct netobs_flow flow = record_of(PLAIN);

	assert_int_equal(flow.sz, sizeof(flow));
	assert_int_equal(flow.start_ns, 1005);
	assert_int_equal(flow.end_ns, 1007);
	assert_int_equal(flow.packets, 3);
	assert_int_equal(flow.bytes, 300);
	assert_int_equal(flow.l2_bytes, 342);
	assert_memory_equal(flow.src, src, sizeof(src));
	assert_memory_equal(flow.dst, dst, sizeof(dst));
	assert_int_equal(flow.src_port, 1000);
	assert_int_equal(flow.dst_port, 2000);
	assert_int_equal(flow.ethertype, 0x0800);
	assert_int_equal(flow.proto, 17);
	assert_int_equal(flow.end_reason, NETOBS_END_IDLE);
	assert_int_equal(flow.n_points, 0);
}

TEST(record_has_the_values_of_what_it_has)
{
	struct netobs_flow flow = record_of(TCP);

	assert_int_equal(flow.tcp_flags, 0xfff);
	assert_int_equal(flow.tcp_combined, 0);
	assert_int_equal(flow.ecn_seen, 0xf);
	flow = record_of(TCP_SERVER);
	assert_int_equal(flow.tcp_flags, 0x013);
	assert_int_equal(flow.tcp_combined, NETOBS_TCP_SYN_ACK);
	assert_int_equal(flow.ecn_seen, 0);
	flow = record_of(UDP_MARKED);
	assert_int_equal(flow.tcp_flags, 0);
	assert_int_equal(flow.ecn_seen, 1 << 2);
	assert_int_equal(flow.dscp, 46);
	assert_int_equal(flow.flow_label, 0xbeef5);
	assert_int_equal(flow.ttl_min, 1);
	assert_int_equal(flow.ttl_max, 255);
	flow = record_of(ICMP);
	assert_int_equal(flow.icmp_type, 3);
	assert_int_equal(flow.icmp_code, 13);
	assert_int_equal(flow.dst_port, 0);
	flow = record_of(ICMP6);
	assert_int_equal(flow.icmp_type, 128);
	assert_int_equal(flow.icmp_code, 0);
	assert_int_equal(flow.ethertype, 0x86dd);
	flow = record_of(ESP);
	assert_int_equal(flow.src_port, 0);
	flow = record_of(WITH_MAC);
	assert_memory_equal(flow.src_mac, "\2\0\0\0\0\1", 6);
	assert_memory_equal(flow.dst_mac, "\2\0\0\0\0\2", 6);
}

TEST(record_has_the_values_of_tags_and_tunnels)
{
	struct netobs_flow flow = record_of(WITH_VLAN);

	assert_int_equal(flow.vlan_id, 4095);
	flow = record_of(WITH_TWO_VLANS);
	assert_int_equal(flow.vlan_id, 10);
	assert_int_equal(flow.outer_vlan_id, 20);
	flow = record_of(IN_GENEVE);
	assert_int_equal(flow.tunnel, NETOBS_TUNNEL_GENEVE);
	assert_int_equal(flow.vni, 0xabcdef);
	assert_int_equal(flow.outer_src_port, 40000);
	assert_int_equal(flow.outer_dst_port, 4789);
	assert_int_equal(flow.outer_src[15], 9);
	assert_int_equal(flow.outer_dst[15], 8);
	flow = record_of(IN_VXLAN_OF_UNKNOWN_ENDS);
	assert_int_equal(flow.outer_dst_port, 4789);
	assert_int_equal(flow.outer_src[15], 0);
	assert_int_equal(flow.outer_dst[15], 0);
	flow = record_of(IN_GRE_WITH_KEY);
	assert_int_equal(flow.vni, 0xdeadbeef);
	flow = record_of(IN_IPIP);
	assert_int_equal(flow.tunnel, NETOBS_TUNNEL_IPIP);
}

TEST(record_names_the_points_of_all_namespaces)
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 2 },
						   { .ifindex = 2, .netns = 1 },
						   { .ifindex = 0 } };
	const struct clock clock = { .kind = CLOCK_HOST };
	struct flow_key key = world_key(0, 0, false);
	struct record record = { 0 };
	struct host host;
	struct flow flow;

	world_build(&host, 2, links);
	flow_init(&flow, &key);
	flow_ensure_point(&flow, 1, 2, false);
	flow_ensure_point(&flow, 0, 2, true);
	flow_ensure_point(&flow, 0, 77, false); /* gone permanently */
	assert_int_equal(record_fill(&record, &flow, &delta, NETOBS_END_ACTIVE,
				     &host, &clock),
			 0);
	assert_int_equal(record.flow.n_points, 3);
	assert_int_equal(record.flow.points[0].ifindex, 77);
	assert_string_equal(record.flow.points[0].name, "");
	assert_int_equal(record.flow.points[1].netns_inode, 1001);
	assert_int_equal(record.flow.points[1].direction, NETOBS_INGRESS);
	assert_string_equal(record.flow.points[1].name, "if2");
	assert_int_equal(record.flow.points[2].netns_inode, 1000);
	assert_int_equal(record.flow.points[2].direction, NETOBS_EGRESS);
	record_done(&record);
	flow_done(&flow);
	host_done(&host);
}

TEST(record_without_interfaces_has_no_points)
{
	const struct clock clock = { .kind = CLOCK_PACKET };
	struct flow_key key = world_key(0, 0, false);
	struct host nowhere = { 0 };
	struct record record = { 0 };
	struct flow flow;

	flow_init(&flow, &key);
	flow_ensure_point(&flow, 0, 1, false);
	assert_int_equal(record_fill(&record, &flow, &delta, NETOBS_END_ACTIVE,
				     &nowhere, &clock),
			 0);
	assert_int_equal(record.flow.n_points, 0);
	record_done(&record);
	flow_done(&flow);
}
