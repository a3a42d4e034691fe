// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pbflow.h"

#include "flow.pb-c.h"
#include "utf8.h"
#include "util.h"

#include <assert.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <string.h>

enum {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_CWR = 0x80,
	TCP_KINDS = TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK,

	/* What flowlogs-pipeline tells the ends of connections by. */
	SYN_AND_ACK = 0x100,
	FIN_AND_ACK = 0x200,
	RST_AND_ACK = 0x400,

	ENTRY_TAG = 1 << 3 | 2, /* Records.entries: field 1, with a length */
};

/* A record and the messages in it. */
struct message {
	Pbflow__Record record;
	Pbflow__Timestamp start, end;
	Pbflow__DataLink link;
	Pbflow__Network network;
	Pbflow__Transport transport;
	Pbflow__IP src, dst, agent, outer_src, outer_dst;
	Pbflow__Tunnel tunnel;
	Pbflow__Duration rtt;
	Pbflow__DupMapEntry points[PACK_POINTS_MAX];
	Pbflow__DupMapEntry *list[PACK_POINTS_MAX];
	char names[PACK_POINTS_MAX][3 * PACK_NAME_MAX + 1]; /* repaired */
};

static const uint8_t nowhere[16];

static void set_time(Pbflow__Timestamp *time, int64_t ns)
{
	pbflow__timestamp__init(time);
	time->seconds = ns / NSEC_PER_SEC;
	time->nanos = (int32_t)(ns % NSEC_PER_SEC);
	if (time->nanos < 0) { /* before 1970; nanos count forward */
		time->seconds--;
		time->nanos += NSEC_PER_SEC;
	}
}

static uint64_t mac_number(const uint8_t mac[6])
{
	uint64_t number = 0;

	for (int i = 0; i < 6; i++)
		number = number << 8 | mac[i];
	return number;
}

static void set_ip(Pbflow__IP *ip, const uint8_t address[16], bool is_v4)
{
	pbflow__ip__init(ip);
	if (is_v4) {
		uint32_t number;

		memcpy(&number, address + 12, sizeof(number));
		ip->ip_family_case = PBFLOW__IP__IP_FAMILY_IPV4;
		ip->ipv4 = ntohl(number);
	} else {
		ip->ip_family_case = PBFLOW__IP__IP_FAMILY_IPV6;
		ip->ipv6.len = 16;
		ip->ipv6.data = (uint8_t *)address;
	}
}

/* Of packets that are of no kind, NetObserv takes one bit each, the lowest. */
static uint32_t odd_flags(uint32_t flags)
{
	for (uint32_t bit = TCP_PSH; bit <= TCP_CWR; bit <<= 1)
		if (flags & bit)
			return bit;
	return 0;
}

/*
 * NetObserv counts a packet for one bit: SYN, FIN or RST together with ACK are bits of
 * their own, and not SYN, FIN, RST or ACK. What other packets had is known or-ed: a SYN
 * beside a SYN+ACK, for one, cannot be told from it.
 */
static uint32_t tcp_flags(const struct netobs_flow *flow)
{
	static const struct {
		uint8_t seen;
		uint32_t plain, combined;
	} pairs[] = {
		{ NETOBS_TCP_SYN_ACK, TCP_SYN, SYN_AND_ACK },
		{ NETOBS_TCP_FIN_ACK, TCP_FIN, FIN_AND_ACK },
		{ NETOBS_TCP_RST_ACK, TCP_RST, RST_AND_ACK },
	};
	uint32_t flags = flow->tcp_flags & TCP_KINDS, n_kinds = 0;

	if (!(flow->has & NETOBS_HAS_TCP))
		return 0;
	if (!flags)
		return odd_flags(flow->tcp_flags);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (!(flow->tcp_combined & pairs[i].seen))
			continue;
		flags = (flags & ~pairs[i].plain) | pairs[i].combined;
		n_kinds++;
	}
	/* Each of these was a packet, and the ACK is theirs. */
	return flow->packets <= n_kinds ? flags & ~(uint32_t)TCP_ACK : flags;
}

/* Readers refuse the whole message if a string in it is not UTF-8. */
static void set_point(struct message *m, size_t i,
		      const struct netobs_point *point)
{
	Pbflow__DupMapEntry *entry = &m->points[i];
	const char *name = point->name ?: "unknown";

	assert(strlen(name) <= PACK_NAME_MAX);
	pbflow__dup_map_entry__init(entry);
	entry->interface = (char *)utf8_repair(name, m->names[i]);
	entry->direction = (Pbflow__Direction)point->direction;
	entry->if_index = point->ifindex;
	entry->netns_inode = point->netns_inode;
}

static void set_points(struct message *m, const struct netobs_flow *flow)
{
	static const struct netobs_point unknown;
	size_t n = min_u64(flow->n_points, PACK_POINTS_MAX);

	for (size_t i = 0; i < n; i++)
		set_point(m, i, &flow->points[i]);
	if (!n)
		set_point(m, n++, &unknown);
	for (size_t i = 0; i < n; i++)
		m->list[i] = &m->points[i];
	m->record.dup_list = m->list;
	m->record.n_dup_list = n;
	m->record.direction = m->points[0].direction;
}

static void set_link(Pbflow__DataLink *link, const struct netobs_flow *flow)
{
	pbflow__data_link__init(link);
	if (!(flow->has & NETOBS_HAS_MAC))
		return;
	link->src_mac = mac_number(flow->src_mac);
	link->dst_mac = mac_number(flow->dst_mac);
}

static void set_network(struct message *m, const struct netobs_flow *flow)
{
	bool is_v4 = flow->ethertype != ETHERTYPE_IPV6;

	set_ip(&m->src, flow->src, is_v4);
	set_ip(&m->dst, flow->dst, is_v4);
	pbflow__network__init(&m->network);
	m->network.src_addr = &m->src;
	m->network.dst_addr = &m->dst;
	m->network.dscp = flow->dscp;
}

static void set_transport(Pbflow__Transport *transport,
			  const struct netobs_flow *flow)
{
	pbflow__transport__init(transport);
	transport->protocol = flow->proto;
	if (!(flow->has & NETOBS_HAS_PORTS))
		return;
	transport->src_port = flow->src_port;
	transport->dst_port = flow->dst_port;
}

/* An address of a tunnel says itself whether it is of IPv4. */
static bool is_v4_mapped(const uint8_t address[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, 0xff };

	return !memcmp(address, v4, sizeof(v4));
}

static void set_tunnel(struct message *m, const struct netobs_flow *flow)
{
	Pbflow__Tunnel *tunnel = &m->tunnel;

	if (!(flow->has & NETOBS_HAS_TUNNEL))
		return;
	pbflow__tunnel__init(tunnel);
	tunnel->kind = (Pbflow__Tunnel__Kind)flow->tunnel;
	if (flow->has & NETOBS_HAS_VNI) {
		tunnel->id_case = PBFLOW__TUNNEL__ID_VNI;
		tunnel->vni = flow->vni;
	}
	if (flow->has & NETOBS_HAS_OUTER) {
		set_ip(&m->outer_src, flow->outer_src,
		       is_v4_mapped(flow->outer_src));
		set_ip(&m->outer_dst, flow->outer_dst,
		       is_v4_mapped(flow->outer_dst));
		tunnel->src_addr = &m->outer_src;
		tunnel->dst_addr = &m->outer_dst;
	}
	if (flow->has & NETOBS_HAS_OUTER_PORTS) {
		tunnel->src_port = flow->outer_src_port;
		tunnel->dst_port = flow->outer_dst_port;
	}
	m->record.tunnel = tunnel;
}

/* What NetObserv has no fields for. */
static void set_own(struct message *m, const struct netobs_flow *flow)
{
	Pbflow__Record *record = &m->record;

	record->l3_bytes = flow->bytes;
	if (flow->has & NETOBS_HAS_TCP)
		record->tcp_flags = flow->tcp_flags;
	if (flow->has & NETOBS_HAS_VLAN) {
		record->vlan_case = PBFLOW__RECORD__VLAN_VLAN_ID;
		record->vlan_id = flow->vlan_id;
	}
	if (flow->has & NETOBS_HAS_OUTER_VLAN) {
		record->outer_vlan_case =
			PBFLOW__RECORD__OUTER_VLAN_OUTER_VLAN_ID;
		record->outer_vlan_id = flow->outer_vlan_id;
	}
	record->ttl_min = flow->ttl_min;
	record->ttl_max = flow->ttl_max;
	record->ecn_seen = flow->ecn_seen;
	record->end_reason = flow->end_reason;
	set_tunnel(m, flow);
}

static void set_options(struct message *m, const struct pbflow_options *options)
{
	m->record.sampling = options->sampling > 1 ? options->sampling : 0;
	if (!memcmp(options->agent_ip, nowhere, sizeof(nowhere)))
		return;
	set_ip(&m->agent, options->agent_ip, is_v4_mapped(options->agent_ip));
	m->record.agent_ip = &m->agent;
}

static void set_record(struct message *m, const struct netobs_flow *flow)
{
	Pbflow__Record *record = &m->record;

	pbflow__record__init(record);
	set_time(&m->start, flow->start_ns);
	set_time(&m->end, flow->end_ns);
	set_link(&m->link, flow);
	set_network(m, flow);
	set_transport(&m->transport, flow);
	set_points(m, flow);
	pbflow__duration__init(&m->rtt);

	record->time_flow_start = &m->start;
	record->time_flow_end = &m->end;
	record->data_link = &m->link;
	record->network = &m->network;
	record->transport = &m->transport;
	record->time_flow_rtt = &m->rtt;
	record->eth_protocol = flow->ethertype;
	record->bytes = flow->has & NETOBS_HAS_MAC ? flow->l2_bytes : flow->bytes;
	/* Readers cut it to 32 bits; that many are not in one interval. */
	record->packets = min_u64(flow->packets, UINT32_MAX);
	record->flags = tcp_flags(flow);
	if (flow->has & NETOBS_HAS_ICMP) {
		record->icmp_type = flow->icmp_type;
		record->icmp_code = flow->icmp_code;
	}
	set_own(m, flow);
}

size_t pbflow_record(const struct netobs_flow *flow,
		     const struct pbflow_options *options, uint8_t *buf)
{
	struct message m;

	set_record(&m, flow);
	set_options(&m, options);
	return pbflow__record__pack(&m.record, buf);
}

/* Seven bits a byte, the low ones first. Returns how many there are. */
static size_t put_length(uint8_t *to, size_t len)
{
	size_t n = 0;

	for (; len >= 0x80; len >>= 7)
		to[n++] = (uint8_t)(len | 0x80);
	to[n++] = (uint8_t)len;
	return n;
}

size_t pbflow_entry(const struct netobs_flow *flow,
		    const struct pbflow_options *options, uint8_t *buf)
{
	size_t room = PBFLOW_ENTRY_MAX - PBFLOW_RECORD_MAX;
	size_t len = pbflow_record(flow, options, buf + room), head;

	_Static_assert(PBFLOW_RECORD_MAX < 1 << 21, "three bytes of length");
	buf[0] = ENTRY_TAG;
	head = 1 + put_length(buf + 1, len);
	memmove(buf + head, buf + room, len);
	return head + len;
}
