/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "merge.h"

#include "bpf/parse/headers.h"
#include "base/util.h"
#include "host/host.h"
#include "catalogue/fields.h"

#include <errno.h>
#include <string.h>

_Static_assert((int)NETOBS_TUNNEL_ERSPAN == (int)TUNNEL_ERSPAN, "same order");

void record_done(struct record *record)
{
	free(record->points);
	*record = (struct record){ 0 };
}

/* A packet without any flag has flags, too; one whose header is cut may have. */
static bool has_tcp_flags(uint32_t marks)
{
	return marks & MARK_TCP_MASK || !(marks & MARK_NO_TCP_FLAGS);
}

static uint8_t tcp_combined(uint32_t marks)
{
	return (marks & MARK_SYN_ACK ? NETOBS_TCP_SYN_ACK : 0) |
	       (marks & MARK_FIN_ACK ? NETOBS_TCP_FIN_ACK : 0) |
	       (marks & MARK_RST_ACK ? NETOBS_TCP_RST_ACK : 0);
}

static void set_transport(struct netobs_flow *out, const struct flow *flow)
{
	uint32_t marks = flow->attrs.marks;
	const struct flow_key *key = &flow->key;
	bool is_ipv6 = key->flags & KEY_IPV6;

	if (key->flags & KEY_NO_TRANSPORT)
		return;
	switch (key->proto) {
	case IP_PROTO_TCP:
		out->has |= NETOBS_HAS_PORTS;
		if (!has_tcp_flags(marks))
			break;
		out->has |= NETOBS_HAS_TCP;
		out->tcp_flags = marks & MARK_TCP_MASK;
		out->tcp_combined = tcp_combined(marks);
		break;
	case IP_PROTO_UDP:
	case IP_PROTO_UDPLITE:
	case IP_PROTO_SCTP:
	case IP_PROTO_DCCP:
		out->has |= NETOBS_HAS_PORTS;
		break;
	case IP_PROTO_ICMP:
		out->has |= is_ipv6 ? 0 : NETOBS_HAS_ICMP;
		break;
	case IP_PROTO_ICMPV6:
		out->has |= is_ipv6 ? NETOBS_HAS_ICMP : 0;
		break;
	}
	if (out->has & NETOBS_HAS_PORTS) {
		out->src_port = key->src_port;
		out->dst_port = key->dst_port;
	}
	if (out->has & NETOBS_HAS_ICMP) {
		out->icmp_type = key->dst_port >> 8;
		out->icmp_code = key->dst_port;
	}
}

#define FIELD(...)
#define POINT_FIELD(...)
#define ATTR_FIELD(member, type, bit, ...) \
	out->member = attrs->member;       \
	out->has |= out->member ? (bit) : 0;

static void set_attrs(struct netobs_flow *out, const struct flow_attrs *attrs)
{
#include "catalogue/fields.def"
}

static void set_link(struct netobs_flow *out, const struct flow *flow)
{
	if (flow->has_mac) {
		out->has |= NETOBS_HAS_MAC;
		memcpy(out->dst_mac, flow->macs, sizeof(out->dst_mac));
		memcpy(out->src_mac, flow->macs + 6, sizeof(out->src_mac));
	}
	if (flow->key.vlan & VLAN_PRESENT) {
		out->has |= NETOBS_HAS_VLAN;
		out->vlan_id = flow->key.vlan & VLAN_ID_MASK;
	}
	if (flow->key.outer_vlan & VLAN_PRESENT) {
		out->has |= NETOBS_HAS_OUTER_VLAN;
		out->outer_vlan_id = flow->key.outer_vlan & VLAN_ID_MASK;
	}
}

static void set_tunnel(struct netobs_flow *out, const struct flow *flow)
{
	const struct flow_tunnel *tunnel = &flow->tunnel;

	out->has |= NETOBS_HAS_TUNNEL;
	out->tunnel = tunnel->type;
	if (tunnel->has_addrs) {
		out->has |= NETOBS_HAS_OUTER;
		memcpy(out->outer_src, tunnel->addrs.src.bytes,
		       sizeof(out->outer_src));
		memcpy(out->outer_dst, tunnel->addrs.dst.bytes,
		       sizeof(out->outer_dst));
	}
	if (tunnel->dst_port) {
		out->has |= NETOBS_HAS_OUTER_PORTS;
		out->outer_src_port = tunnel->src_port;
		out->outer_dst_port = tunnel->dst_port;
	}
	/* A GRE key is optional; its value 0 looks like none. */
	if (tunnel->type == TUNNEL_VXLAN || tunnel->type == TUNNEL_GENEVE ||
	    tunnel->type == TUNNEL_GTPU || tunnel->vni) {
		out->has |= NETOBS_HAS_VNI;
		out->vni = tunnel->vni;
	}
}

static void set_point(struct netobs_point *out, const struct point *point,
		      const struct host *host)
{
	const struct netif *netif = host_find(host, point->netns, point->ifindex);

	*out = (struct netobs_point){
		.ifindex = point->ifindex,
		.netns_inode = host->netns[point->netns].inode,
		.direction = point->egress ? NETOBS_EGRESS : NETOBS_INGRESS,
		.name = netif ? netif->name : "",
	};
}

/* Replay has no interfaces. */
static int set_points(struct record *record, const struct flow *flow,
		      const struct host *host)
{
	uint32_t n = host->n_netns ? flow->n_points : 0;

	if (n > record->capacity) {
		struct netobs_point *points =
			reallocarray(record->points, n, sizeof(*points));

		if (!points)
			return -ENOMEM;
		record->points = points;
		record->capacity = n;
	}
	for (uint32_t i = 0; i < n; i++)
		set_point(&record->points[i], &flow->points[i], host);
	record->flow.points = record->points;
	record->flow.n_points = n;
	return 0;
}

int record_fill(struct record *record, const struct flow *flow,
		const struct volume *delta, enum netobs_end_reason reason,
		const struct host *host, const struct clock *clock)
{
	const struct flow_key *key = &flow->key;
	struct netobs_flow *out = &record->flow;

	*out = (struct netobs_flow){
		.sz = sizeof(*out),
		.start_ns = clock_to_wall(clock, flow->first_ns),
		.end_ns = clock_to_wall(clock, flow->last_ns),
		.packets = delta->packets,
		.bytes = delta->bytes,
		.l2_bytes = delta->l2_bytes,
		.ecn_seen = flow->attrs.marks >> MARK_ECN_SHIFT & MARK_ECN_MASK,
		.ethertype = key->flags & KEY_IPV6 ? ETHERTYPE_IPV6 :
						     ETHERTYPE_IPV4,
		.proto = key->proto,
		.end_reason = reason,
		.point_size = sizeof(struct netobs_point),
	};
	if (record->sampling) {
		out->has |= NETOBS_HAS_SAMPLING;
		out->sampling = record->sampling;
		out->sampling_mode = record->sampling_mode;
	}
	memcpy(out->src, key->src.bytes, sizeof(out->src));
	memcpy(out->dst, key->dst.bytes, sizeof(out->dst));
	set_attrs(out, &flow->attrs);
	set_transport(out, flow);
	set_link(out, flow);
	if (flow->tunnel.type)
		set_tunnel(out, flow);
	return set_points(record, flow, host);
}
