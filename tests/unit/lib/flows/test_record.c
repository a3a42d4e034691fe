// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* From a flow to the public record. */
#include "lib_test.h"
#include "lib_world.h"
#include "flows/merge.h"
#include "base/util.h"

#include <string.h>

static const struct volume delta = { 3, 300, 342 };

/* @change is made to a UDP flow before the record is filled. */
static struct netobs_flow record_with(void (*change)(struct flow *flow))
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 0 } };
	const struct clock clock = { .kind = CLOCK_PRECISE, .wall_offset = 1000 };
	struct flow_key key = world_key(0, 0, false);
	struct record record = { 0 };
	struct netobs_flow out;
	struct host host;
	struct flow flow;

	world_build(&host, 1, links);
	flow_init(&flow, &key);
	flow.first_ns = 5;
	flow.last_ns = 7;
	if (change)
		change(&flow);
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

TEST(record_of_a_plain_flow)
{
	static const uint8_t src[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const uint8_t dst[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
	struct netobs_flow flow = record_with(NULL);

	assert_int_equal(flow.sz, sizeof(flow));
	assert_int_equal(flow.has, NETOBS_HAS_PORTS);
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

static void be_tcp(struct flow *flow)
{
	flow->key.proto = 6;
	flow->attrs.marks = 0xffff;
}

/* All that was seen of it were first fragments of 8 bytes. */
static void be_tcp_cut_off(struct flow *flow)
{
	flow->key.proto = 6;
	flow->attrs.marks = MARK_NO_TCP_FLAGS;
}

static void be_tcp_cut_off_at_times(struct flow *flow)
{
	flow->key.proto = 6;
	flow->attrs.marks = MARK_NO_TCP_FLAGS | 0x10;
}

static void be_tcp_without_flags(struct flow *flow)
{
	flow->key.proto = 6;
}

/* Both, but not in one packet. */
static void be_tcp_server(struct flow *flow)
{
	flow->key.proto = 6;
	flow->attrs.marks = 0x013 | MARK_SYN_ACK;
}

static void be_udp_marked(struct flow *flow)
{
	flow->attrs.marks = 1 << (MARK_ECN_SHIFT + 2);
	flow->attrs.dscp = 46;
	flow->attrs.flow_label = 0xbeef5;
	flow->attrs.ttl_min = 1;
	flow->attrs.ttl_max = 255;
}

static void be_icmp(struct flow *flow)
{
	flow->key.proto = 1;
	flow->key.src_port = 0;
	flow->key.dst_port = 3 << 8 | 13;
}

static void be_icmp6(struct flow *flow)
{
	flow->key.flags = KEY_IPV6;
	flow->key.proto = 58;
	flow->key.dst_port = 128 << 8;
}

/* Protocol numbers that mean nothing in the other IP version. */
static void be_icmp_in_ipv6(struct flow *flow)
{
	flow->key.flags = KEY_IPV6;
	flow->key.proto = 1;
}

static void be_icmp6_in_ipv4(struct flow *flow)
{
	flow->key.proto = 58;
}

static void be_sctp(struct flow *flow)
{
	flow->key.proto = 132;
}

static void be_dccp(struct flow *flow)
{
	flow->key.proto = 33;
}

static void be_udplite(struct flow *flow)
{
	flow->key.proto = 136;
}

static void be_esp(struct flow *flow)
{
	flow->key.proto = 50;
}

/* Ports, flags and the like were in a fragment that was not seen. */
static void be_tcp_without_header(struct flow *flow)
{
	flow->key.proto = 6;
	flow->key.flags = KEY_NO_TRANSPORT;
	flow->key.src_port = flow->key.dst_port = 0;
}

static void be_icmp_without_header(struct flow *flow)
{
	be_icmp(flow);
	flow->key.flags = KEY_NO_TRANSPORT;
}

static void have_mac(struct flow *flow)
{
	flow->has_mac = true;
	memcpy(flow->macs, "\2\0\0\0\0\2\2\0\0\0\0\1", 12);
}

static void have_vlan(struct flow *flow)
{
	flow->key.vlan = VLAN_PRESENT | 4095;
}

static void have_vlan_0(struct flow *flow)
{
	flow->key.vlan = VLAN_PRESENT;
}

static void have_two_vlans(struct flow *flow)
{
	flow->key.vlan = VLAN_PRESENT | 10;
	flow->key.outer_vlan = VLAN_PRESENT | 20;
}

static void be_in_vxlan(struct flow *flow)
{
	flow->tunnel.type = TUNNEL_VXLAN;
	flow->tunnel.src_port = 40000;
	flow->tunnel.dst_port = 4789;
	flow->tunnel.has_addrs = true;
	flow->tunnel.addrs.src.bytes[15] = 9;
	flow->tunnel.addrs.dst.bytes[15] = 8;
}

static void be_in_geneve(struct flow *flow)
{
	be_in_vxlan(flow);
	flow->tunnel.type = TUNNEL_GENEVE;
	flow->tunnel.vni = 0xabcdef;
}

/* The kernel has forgotten the addresses. */
static void be_in_vxlan_of_unknown_ends(struct flow *flow)
{
	be_in_vxlan(flow);
	flow->tunnel.has_addrs = false;
}

static void be_in_gre(struct flow *flow)
{
	flow->tunnel.type = TUNNEL_GRE;
}

static void be_in_gre_with_key(struct flow *flow)
{
	flow->tunnel.type = TUNNEL_GRE;
	flow->tunnel.vni = 0xdeadbeef;
}

static void be_in_ipip(struct flow *flow)
{
	flow->tunnel.type = TUNNEL_IPIP;
}

TEST(record_says_which_fields_it_has)
{
	const uint64_t ports = NETOBS_HAS_PORTS, tunnel = NETOBS_HAS_TUNNEL;
	const uint64_t udp = tunnel | NETOBS_HAS_OUTER_PORTS | NETOBS_HAS_VNI;
	const struct {
		void (*change)(struct flow *flow);
		uint64_t has;
	} cases[] = {
		{ be_tcp, ports | NETOBS_HAS_TCP },
		{ be_tcp_without_flags, ports | NETOBS_HAS_TCP },
		{ be_tcp_cut_off, ports },
		{ be_tcp_cut_off_at_times, ports | NETOBS_HAS_TCP },
		{ be_udp_marked, ports | NETOBS_HAS_FLOW_LABEL },
		{ be_icmp, NETOBS_HAS_ICMP },
		{ be_icmp6, NETOBS_HAS_ICMP },
		{ be_icmp_in_ipv6, 0 },
		{ be_icmp6_in_ipv4, 0 },
		{ be_tcp_without_header, 0 },
		{ be_icmp_without_header, 0 },
		{ be_sctp, ports },
		{ be_dccp, ports },
		{ be_udplite, ports },
		{ be_esp, 0 },
		{ have_mac, ports | NETOBS_HAS_MAC },
		{ have_vlan, ports | NETOBS_HAS_VLAN },
		{ have_vlan_0, ports | NETOBS_HAS_VLAN },
		{ have_two_vlans,
		  ports | NETOBS_HAS_VLAN | NETOBS_HAS_OUTER_VLAN },
		{ be_in_vxlan, ports | udp | NETOBS_HAS_OUTER },
		{ be_in_vxlan_of_unknown_ends, ports | udp },
		{ be_in_geneve, ports | udp | NETOBS_HAS_OUTER },
		{ be_in_gre, ports | tunnel },
		{ be_in_gre_with_key, ports | tunnel | NETOBS_HAS_VNI },
		{ be_in_ipip, ports | tunnel },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_flow flow = record_with(cases[i].change);

		if (flow.has != cases[i].has)
			fail_msg("case %zu: %jx", i, (uintmax_t)flow.has);
	}
}

TEST(record_has_the_values_of_what_it_has)
{
	struct netobs_flow flow = record_with(be_tcp);

	assert_int_equal(flow.tcp_flags, 0xfff);
	assert_int_equal(flow.tcp_combined, 0);
	assert_int_equal(flow.ecn_seen, 0xf);
	flow = record_with(be_tcp_server);
	assert_int_equal(flow.tcp_flags, 0x013);
	assert_int_equal(flow.tcp_combined, NETOBS_TCP_SYN_ACK);
	assert_int_equal(flow.ecn_seen, 0);
	flow = record_with(be_udp_marked);
	assert_int_equal(flow.tcp_flags, 0);
	assert_int_equal(flow.ecn_seen, 1 << 2);
	assert_int_equal(flow.dscp, 46);
	assert_int_equal(flow.flow_label, 0xbeef5);
	assert_int_equal(flow.ttl_min, 1);
	assert_int_equal(flow.ttl_max, 255);
	flow = record_with(be_icmp);
	assert_int_equal(flow.icmp_type, 3);
	assert_int_equal(flow.icmp_code, 13);
	assert_int_equal(flow.dst_port, 0);
	flow = record_with(be_icmp6);
	assert_int_equal(flow.icmp_type, 128);
	assert_int_equal(flow.icmp_code, 0);
	assert_int_equal(flow.ethertype, 0x86dd);
	flow = record_with(be_esp);
	assert_int_equal(flow.src_port, 0);
	flow = record_with(have_mac);
	assert_memory_equal(flow.src_mac, "\2\0\0\0\0\1", 6);
	assert_memory_equal(flow.dst_mac, "\2\0\0\0\0\2", 6);
}

TEST(record_has_the_values_of_tags_and_tunnels)
{
	struct netobs_flow flow = record_with(have_vlan);

	assert_int_equal(flow.vlan_id, 4095);
	flow = record_with(have_two_vlans);
	assert_int_equal(flow.vlan_id, 10);
	assert_int_equal(flow.outer_vlan_id, 20);
	flow = record_with(be_in_geneve);
	assert_int_equal(flow.tunnel, NETOBS_TUNNEL_GENEVE);
	assert_int_equal(flow.vni, 0xabcdef);
	assert_int_equal(flow.outer_src_port, 40000);
	assert_int_equal(flow.outer_dst_port, 4789);
	assert_int_equal(flow.outer_src[15], 9);
	assert_int_equal(flow.outer_dst[15], 8);
	flow = record_with(be_in_vxlan_of_unknown_ends);
	assert_int_equal(flow.outer_dst_port, 4789);
	assert_int_equal(flow.outer_src[15], 0);
	assert_int_equal(flow.outer_dst[15], 0);
	flow = record_with(be_in_gre_with_key);
	assert_int_equal(flow.vni, 0xdeadbeef);
	flow = record_with(be_in_ipip);
	assert_int_equal(flow.tunnel, NETOBS_TUNNEL_IPIP);
}

TEST(record_names_the_points_of_all_namespaces)
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 2 },
						   { .ifindex = 2, .netns = 1 },
						   { .ifindex = 0 } };
	const struct clock clock = { .kind = CLOCK_PRECISE };
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
