// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "record.h"

#include "util.h"

#include <endian.h>
#include <string.h>

/* layer2SegmentId says in its highest octet what it is the identifier of. */
#define SEGMENT_VXLAN (1ULL << 56)

/* ---- Times --------------------------------------------------------------------- */

/* From 1900 to 1970. */
#define NTP_EPOCH 2208988800ULL

/*
 * Seconds and a fraction, as in NTP: RFC 5905, 6. In 2036 the seconds start again.
 * The fraction is rounded up, so that who rounds it down finds the number that it
 * was made from. Of microseconds, the lowest 11 bits are to be 0: 6.1.9.
 */
static uint64_t ntp_time(uint64_t ns, bool is_micro)
{
	uint64_t seconds = ns / NSEC_PER_SEC, rest = ns % NSEC_PER_SEC;
	uint64_t fraction;

	if (is_micro)
		rest -= rest % 1000;
	fraction = ((rest << 32) + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	if (is_micro)
		fraction = (fraction + 2047) & ~2047ULL;
	return (uint64_t)(uint32_t)(seconds + NTP_EPOCH) << 32 | fraction;
}

uint64_t record_time(int64_t ns, enum layout_timestamps timestamps)
{
	uint64_t known = ns < 0 ? 0 : (uint64_t)ns;

	if (timestamps == TIMESTAMPS_MS)
		return known / NSEC_PER_MSEC;
	return ntp_time(known, timestamps == TIMESTAMPS_US);
}

/* ---- Flows --------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9fb21c651e98df25ULL;
	return hash ^ hash >> 32;
}

static uint64_t mix_address(uint64_t hash, const uint8_t address[16])
{
	uint64_t half[2];

	memcpy(half, address, sizeof(half));
	return mix(mix(hash, le64toh(half[0])), le64toh(half[1]));
}

/* The same for each record of a flow. */
static uint64_t flow_id(const struct netobs_flow *flow)
{
	uint64_t rest = (uint64_t)flow->proto << 48 |
			(uint64_t)flow->icmp_type << 40 |
			(uint64_t)flow->icmp_code << 32 |
			(uint64_t)flow->src_port << 16 | flow->dst_port;
	uint64_t hash = mix_address(1, flow->src);

	hash = mix_address(hash, flow->dst);
	hash = mix(hash, rest);
	if (flow->has & (NETOBS_HAS_VLAN | NETOBS_HAS_VNI))
		hash = mix(hash, (uint64_t)flow->vlan_id << 32 | flow->vni);
	return hash;
}

static uint32_t address4(const uint8_t address[16])
{
	uint32_t value;

	memcpy(&value, address + 12, sizeof(value));
	return be32toh(value);
}

const struct netobs_point *record_ingress(const struct netobs_flow *flow)
{
	for (uint32_t i = 0; i < flow->n_points; i++)
		if (flow->points[i].direction == NETOBS_INGRESS)
			return &flow->points[i];
	return NULL;
}

const struct netobs_point *record_egress(const struct netobs_flow *flow)
{
	for (uint32_t i = flow->n_points; i; i--)
		if (flow->points[i - 1].direction == NETOBS_EGRESS)
			return &flow->points[i - 1];
	return NULL;
}

static void add_points(struct record_flow *record, const struct netobs_flow *flow)
{
	const struct netobs_point *in = record_ingress(flow),
				  *out = record_egress(flow);

	record->ingress_interface = in ? in->ifindex : 0;
	record->egress_interface = out ? out->ifindex : 0;
	if (!flow->n_points)
		return;
	record->direction = flow->points[0].direction;
	record->netns_inode = flow->points[0].netns_inode;
}

/* RFC 7133: where there are two tags, 243 is the outer one. */
static void add_vlan(struct record_flow *record, const struct netobs_flow *flow)
{
	record->vlan = record->post_vlan = record->dot1q_vlan = flow->vlan_id;
	if (!(flow->has & NETOBS_HAS_OUTER_VLAN))
		return;
	record->dot1q_vlan = flow->outer_vlan_id;
	record->dot1q_customer_vlan = flow->vlan_id;
}

static void add_tunnel(struct record_flow *record, const struct netobs_flow *flow)
{
	record->tunnel = flow->tunnel;
	if (flow->has & NETOBS_HAS_VNI) {
		record->tunnel_id = flow->vni;
		if (flow->tunnel == NETOBS_TUNNEL_VXLAN)
			record->segment_id = SEGMENT_VXLAN | flow->vni;
	}
	if (flow->has & NETOBS_HAS_OUTER) {
		memcpy(record->outer_source, flow->outer_src, 16);
		memcpy(record->outer_destination, flow->outer_dst, 16);
	}
	if (flow->has & NETOBS_HAS_OUTER_PORTS) {
		record->outer_source_port = flow->outer_src_port;
		record->outer_destination_port = flow->outer_dst_port;
	}
}

/* Type and code are also where NetFlow had them, which is where many look. */
static void add_ports(struct record_flow *record, const struct netobs_flow *flow)
{
	if (flow->has & NETOBS_HAS_PORTS) {
		record->source_port = flow->src_port;
		record->destination_port = flow->dst_port;
	}
	if (flow->has & NETOBS_HAS_ICMP) {
		record->icmp_type_code =
			(uint16_t)(flow->icmp_type << 8 | flow->icmp_code);
		record->destination_port = record->icmp_type_code;
	}
	if (flow->has & NETOBS_HAS_TCP)
		record->tcp_flags = flow->tcp_flags;
}

static void add_addresses(struct record_flow *record,
			  const struct netobs_flow *flow)
{
	if (record->ip_version == 4) {
		record->source4 = address4(flow->src);
		record->destination4 = address4(flow->dst);
		return;
	}
	memcpy(record->source6, flow->src, 16);
	memcpy(record->destination6, flow->dst, 16);
}

enum layout_kind record_from_flow(struct record_flow *record,
				  const struct netobs_flow *flow,
				  enum layout_timestamps timestamps)
{
	bool is_icmp = flow->has & NETOBS_HAS_ICMP;

	*record = (struct record_flow){
		.start = record_time(flow->start_ns, timestamps),
		.end = record_time(flow->end_ns, timestamps),
		.octets = flow->bytes,
		.packets = flow->packets,
		.flow_id = flow_id(flow),
		.ethertype = flow->ethertype,
		.protocol = flow->proto,
		.tos = (uint8_t)(flow->dscp << 2),
		.ip_version = flow->ethertype == 0x0800 ? 4 : 6,
		.end_reason = flow->end_reason,
		.ttl_min = flow->ttl_min,
		.ttl_max = flow->ttl_max,
		.ecn_seen = flow->ecn_seen,
	};
	add_addresses(record, flow);
	add_ports(record, flow);
	add_points(record, flow);
	if (flow->has & NETOBS_HAS_VLAN)
		add_vlan(record, flow);
	if (flow->has & NETOBS_HAS_MAC) {
		memcpy(record->source_mac, flow->src_mac, 6);
		memcpy(record->destination_mac, flow->dst_mac, 6);
		record->l2_octets = flow->l2_bytes;
	}
	if (flow->has & NETOBS_HAS_TUNNEL)
		add_tunnel(record, flow);
	if (record->ip_version == 4)
		return is_icmp ? LAYOUT_FLOW4_ICMP : LAYOUT_FLOW4;
	return is_icmp ? LAYOUT_FLOW6_ICMP : LAYOUT_FLOW6;
}
