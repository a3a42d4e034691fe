// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "record.h"

#include "base/util.h"

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

#define point_number(member) record->member = flow->points[0].member;
#define point_direction point_number
#define point_netns point_number

#define POINT_derived(...)
#define POINT_all(type, member) point_##type(member)
#define POINT_own POINT_all
#define POINT(type, member, set, ...) POINT_##set(type, member)
#define POINT_EXPANDED(...) POINT(__VA_ARGS__)

#define FIELD(...)
#define POINT_FIELD(member, type, json, proto, ipfix, ...) \
	POINT_EXPANDED(type, member, FIELD_ARGUMENTS ipfix)

static void add_points(struct record_flow *record, const struct netobs_flow *flow)
{
	const struct netobs_point *in = record_ingress(flow),
				  *out = record_egress(flow);

	record->ingress_interface = in ? in->ifindex : 0;
	record->egress_interface = out ? out->ifindex : 0;
	if (!flow->n_points)
		return;
#include "catalogue/fields.def"
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

/* Type and code are also where NetFlow had them, which is where many look. */
static void add_icmp(struct record_flow *record, const struct netobs_flow *flow)
{
	record->icmp_type_code =
		(uint16_t)(flow->icmp_type << 8 | flow->icmp_code);
	record->dst_port = record->icmp_type_code;
}

#define fill_number(member) record->member = flow->member;
#define fill_id fill_number
#define fill_count fill_number
#define fill_duration fill_number
#define fill_tunnel fill_number
#define fill_tcp_flags fill_number
#define fill_dscp(member) record->member = (uint8_t)(flow->member << 2);
#define fill_time(member) \
	record->member = record_time(flow->member, timestamps);
#define fill_bytes(member) \
	memcpy(record->member, flow->member, sizeof(record->member));
#define fill_mac fill_bytes
#define fill_tunnel_end fill_bytes
#define fill_address(member)                                  \
	if (record->ip_version == 4)                          \
		record->member##_v4 = address4(flow->member); \
	else                                                  \
		memcpy(record->member##_v6, flow->member, 16);

#define FILL_derived(...)
#define FILL_all(type, member, bit)      \
	if (field_is_known(flow, bit)) { \
		fill_##type(member)      \
	}
#define FILL_extended FILL_all
#define FILL_extended6 FILL_all
#define FILL_own FILL_all
#define FILL_health FILL_all
#define FILL_sampled FILL_all
#define FILL_sampled_own FILL_all
#define FILL(type, member, bit, set, ...) FILL_##set(type, member, bit)
#define FILL_EXPANDED(...) FILL(__VA_ARGS__)

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, json, proto, ipfix, ...) \
	FILL_EXPANDED(type, member, bit, FIELD_ARGUMENTS ipfix)

static void add_fields(struct record_flow *record, const struct netobs_flow *flow,
		       enum layout_timestamps timestamps)
{
#include "catalogue/fields.def"
}

#define copy_number(end, member) record->end##_##member = flow->end->member;
#define copy_count copy_number
#define copy_text(end, member)                            \
	memcpy(record->end##_##member, flow->end->member, \
	       sizeof(record->end##_##member));
#define COPY_derived(...)
#define COPY_process(type, end, member) copy_##type(end, member)
#define COPY(type, end, member, set, ...) COPY_##set(type, end, member)
#define COPY_EXPANDED(...) COPY(__VA_ARGS__)

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, proto, ipfix, ...) \
	COPY_EXPANDED(type, src_process, member, FIELD_ARGUMENTS ipfix)

static void add_source(struct record_flow *record, const struct netobs_flow *flow)
{
#include "catalogue/fields.def"
}

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, proto, ipfix, ...) \
	COPY_EXPANDED(type, dst_process, member, FIELD_ARGUMENTS ipfix)

static void add_destination(struct record_flow *record,
			    const struct netobs_flow *flow)
{
#include "catalogue/fields.def"
}

/* One of these is known. */
enum {
	HAS_HEALTH = NETOBS_HAS_RTT | NETOBS_HAS_HANDSHAKE_RTT |
		     NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_APP_LATENCY
};

enum layout_kind record_from_flow(struct record_flow *record,
				  const struct netobs_flow *flow,
				  const struct layout_options *options)
{
	bool is_icmp = flow->has & NETOBS_HAS_ICMP;
	int set = flow->has & NETOBS_HAS_SAMPLING ? LAYOUT_SAMPLED : 0;

	*record = (struct record_flow){
		.flow_id = flow_id(flow),
		.ip_version = flow->ethertype == 0x0800 ? 4 : 6,
	};
	add_fields(record, flow, options->timestamps);
	add_points(record, flow);
	if (is_icmp)
		add_icmp(record, flow);
	if (flow->has & NETOBS_HAS_VLAN)
		add_vlan(record, flow);
	if (flow->has & NETOBS_HAS_VNI && flow->tunnel == NETOBS_TUNNEL_VXLAN)
		record->segment_id = SEGMENT_VXLAN | flow->vni;
	if (flow->src_process)
		add_source(record, flow);
	if (flow->dst_process)
		add_destination(record, flow);
	set += record->ip_version == 4 ? LAYOUT_FLOW4 : LAYOUT_FLOW6;
	if (is_icmp)
		return set + LAYOUT_FLOW4_ICMP;
	if (!options->is_extended)
		return set;
	if (flow->src_process || flow->dst_process)
		return set + (flow->has & HAS_HEALTH ? LAYOUT_FLOW4_BOTH :
						       LAYOUT_FLOW4_PROCESS);
	return set + (flow->has & HAS_HEALTH ? LAYOUT_FLOW4_HEALTH : 0);
}

/* ---- Alerts -------------------------------------------------------------------- */

/* Addresses of IPv4 are ::ffff:a.b.c.d. */
static bool is_ipv4(const uint8_t address[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, 0xff };

	return !memcmp(address, prefix, sizeof(prefix));
}

static void add_ends(struct record_alert *record, const struct netobs_alert *alert)
{
	memcpy(record->v6.client, alert->client, sizeof(record->v6.client));
	memcpy(record->v6.server, alert->server, sizeof(record->v6.server));
}

_Static_assert(sizeof(((struct netobs_alert *)NULL)->name) ==
			       RECORD_ALERT_NAME_SIZE &&
		       sizeof(((struct netobs_alert *)NULL)->rule) >=
			       RECORD_ALERT_RULE_SIZE,
	       "they are copied from there");

enum layout_kind record_from_alert(struct record_alert *record,
				   const struct netobs_alert *alert,
				   const struct layout_options *options)
{
	*record = (struct record_alert){
		.time = record_time(alert->record.time_ns, options->timestamps),
		.start = record_time(alert->start_ns, options->timestamps),
		.value = alert->value,
		.threshold = alert->threshold,
		.baseline = alert->baseline,
		.point = alert->ifindex,
		.netns_inode = alert->netns_inode,
		.pid = alert->pid,
		.client_port = alert->client_port,
		.server_port = alert->server_port,
		.protocol = alert->protocol,
		.metric = alert->metric,
		.way = alert->way,
		.hits = (uint8_t)alert->hits,
		.among = (uint8_t)alert->among,
	};
	memcpy(record->interface, alert->interface, sizeof(record->interface));
	memcpy(record->process, alert->process, sizeof(record->process));
	memcpy(record->name, alert->name, sizeof(record->name));
	memcpy(record->rule, alert->rule,
	       strnlen(alert->rule, sizeof(record->rule)));
	if (!is_ipv4(alert->client) || !is_ipv4(alert->server)) {
		add_ends(record, alert);
		return LAYOUT_ALERT6;
	}
	record->v4.client = address4(alert->client);
	record->v4.server = address4(alert->server);
	return LAYOUT_ALERT4;
}

/* ---- Sessions ------------------------------------------------------------------ */

#define SESSION_NUMBER(number, type, member, ...) \
	record->member = session->member;
#define SESSION_TEXT(number, octets, member, ...)              \
	_Static_assert(sizeof(session->member) >= octets, ""); \
	memcpy(record->member, session->member,                \
	       strnlen(session->member, octets));

static void add_session_fields(struct record_session *record,
			       const struct netobs_session *session)
{
#include "sessions.def"
}

enum layout_kind record_from_session(struct record_session *record,
				     const struct netobs_session *session,
				     const struct layout_options *options)
{
	const enum layout_timestamps timestamps = options->timestamps;

	*record = (struct record_session){
		.time = record_time(session->record.time_ns, timestamps),
		.end = record_time(session->end_ns, timestamps),
		.netns_inode = session->netns_inode,
		.local_port = session->local_port,
		.remote_port = session->remote_port,
		.protocol = session->protocol,
	};
	if (session->record.has & NETOBS_SESSION_HAS_START)
		record->start = record_time(session->start_ns, timestamps);
	add_session_fields(record, session);
	if (!is_ipv4(session->remote_addr)) {
		memcpy(record->v6.local, session->local_addr,
		       sizeof(record->v6.local));
		memcpy(record->v6.remote, session->remote_addr,
		       sizeof(record->v6.remote));
		return LAYOUT_SESSION6;
	}
	record->v4.local = address4(session->local_addr);
	record->v4.remote = address4(session->remote_addr);
	return LAYOUT_SESSION4;
}
