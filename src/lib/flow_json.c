/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/flow.h>

#include <errno.h>
#include <stdbool.h>

#include "flow_view.h"
#include "json.h"

static const char *const tunnel_names[] = {
	[NETOBS_TUNNEL_VXLAN] = "vxlan",
	[NETOBS_TUNNEL_GENEVE] = "geneve",
	[NETOBS_TUNNEL_GRE] = "gre",
	[NETOBS_TUNNEL_IPIP] = "ipip",
};

enum { TUNNEL_NAMES = sizeof(tunnel_names) / sizeof(tunnel_names[0]) };

/* Down to whole milliseconds, also before 1970. */
static int64_t ms_floor(int64_t ns)
{
	return ns / 1000000 - (ns % 1000000 < 0);
}

static void add_ip(struct json *json, const char *key, const uint8_t ip[16])
{
	json_key(json, key);
	json_ip(json, ip);
}

static void add_mac(struct json *json, const char *key, const uint8_t mac[6])
{
	json_key(json, key);
	json_mac(json, mac);
}

static void add_times(struct json *json, const struct netobs_flow *flow)
{
	json_key(json, "TimeFlowStartMs");
	json_i64(json, ms_floor(flow->start_ns));
	json_key(json, "TimeFlowEndMs");
	json_i64(json, ms_floor(flow->end_ns));
}

static void add_tuple(struct json *json, const struct netobs_flow *flow)
{
	add_ip(json, "SrcAddr", flow->src);
	add_ip(json, "DstAddr", flow->dst);
	if (flow->has & NETOBS_HAS_PORTS) {
		json_key_u64(json, "SrcPort", flow->src_port);
		json_key_u64(json, "DstPort", flow->dst_port);
	}
	json_key_u64(json, "Proto", flow->proto);
	json_key_u64(json, "Etype", flow->ethertype);
	if (flow->has & NETOBS_HAS_ICMP) {
		json_key_u64(json, "IcmpType", flow->icmp_type);
		json_key_u64(json, "IcmpCode", flow->icmp_code);
	}
}

static void add_counts(struct json *json, const struct netobs_flow *flow)
{
	json_key_u64(json, "Bytes", flow->bytes);
	json_key_u64(json, "Packets", flow->packets);
	if (flow->has & NETOBS_HAS_MAC)
		json_key_u64(json, "L2Bytes", flow->l2_bytes);
	if (flow->has & NETOBS_HAS_TCP)
		json_key_u64(json, "Flags", flow->tcp_flags);
	json_key_u64(json, "Dscp", flow->dscp);
	json_key_u64(json, "EcnSeen", flow->ecn_seen);
	json_key_u64(json, "TtlMin", flow->ttl_min);
	json_key_u64(json, "TtlMax", flow->ttl_max);
	json_key_u64(json, "FlowEndReason", flow->end_reason);
}

static void add_link(struct json *json, const struct netobs_flow *flow)
{
	if (flow->has & NETOBS_HAS_MAC) {
		add_mac(json, "SrcMac", flow->src_mac);
		add_mac(json, "DstMac", flow->dst_mac);
	}
	if (flow->has & NETOBS_HAS_VLAN)
		json_key_u64(json, "VlanId", flow->vlan_id);
	if (flow->has & NETOBS_HAS_OUTER_VLAN)
		json_key_u64(json, "OuterVlanId", flow->outer_vlan_id);
}

static void add_tunnel(struct json *json, const struct netobs_flow *flow)
{
	if (flow->has & NETOBS_HAS_TUNNEL && flow->tunnel < TUNNEL_NAMES &&
	    tunnel_names[flow->tunnel]) {
		json_key(json, "TunnelType");
		json_string(json, tunnel_names[flow->tunnel]);
	}
	if (flow->has & NETOBS_HAS_OUTER) {
		add_ip(json, "OuterSrcAddr", flow->outer_src);
		add_ip(json, "OuterDstAddr", flow->outer_dst);
	}
	if (flow->has & NETOBS_HAS_OUTER_PORTS) {
		json_key_u64(json, "OuterSrcPort", flow->outer_src_port);
		json_key_u64(json, "OuterDstPort", flow->outer_dst_port);
	}
	if (flow->has & NETOBS_HAS_VNI)
		json_key_u64(json, "Vni", flow->vni);
}

/* One number when all points share the namespace, else one per point. */
static void add_netns(struct json *json, const struct netobs_flow *flow)
{
	const uint32_t first = netobs_flow_point(flow, 0)->netns_inode;
	bool shared = true, known = first;

	for (uint32_t i = 1; i < flow->n_points; i++) {
		uint32_t inode = netobs_flow_point(flow, i)->netns_inode;

		shared &= inode == first;
		known |= inode != 0;
	}
	if (!known)
		return;
	if (shared) {
		json_key_u64(json, "NetnsInode", first);
		return;
	}
	json_key(json, "NetnsInodes");
	json_open(json, '[');
	for (uint32_t i = 0; i < flow->n_points; i++)
		json_u64(json, netobs_flow_point(flow, i)->netns_inode);
	json_close(json, ']');
}

static void add_points(struct json *json, const struct netobs_flow *flow)
{
	json_key(json, "Interfaces");
	json_open(json, '[');
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const char *name = netobs_flow_point(flow, i)->name;

		json_string(json, name ? name : "unknown");
	}
	json_close(json, ']');

	json_key(json, "IfDirections");
	json_open(json, '[');
	for (uint32_t i = 0; i < flow->n_points; i++)
		json_u64(json, netobs_flow_point(flow, i)->direction);
	json_close(json, ']');

	json_key(json, "IfIndexes");
	json_open(json, '[');
	for (uint32_t i = 0; i < flow->n_points; i++)
		json_u64(json, netobs_flow_point(flow, i)->ifindex);
	json_close(json, ']');

	add_netns(json, flow);
}

int netobs_flow_json(const struct netobs_flow *flow, char *buf, size_t size)
{
	struct netobs_flow copy;
	struct json json;

	if (!flow || !buf)
		return -EINVAL;
	flow = flow_view(flow, &copy);
	if (!flow)
		return -EINVAL;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_times(&json, flow);
	add_tuple(&json, flow);
	add_counts(&json, flow);
	add_link(&json, flow);
	add_tunnel(&json, flow);
	if (flow->n_points)
		add_points(&json, flow);
	json_close(&json, '}');
	return json_end(&json);
}
