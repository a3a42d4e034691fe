// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "ipfix.h"

#include "base/text.h"
#include "base/util.h"
#include "catalogue/direction.h"
#include "catalogue/records.h"

#include <endian.h>
#include <string.h>

/* layer2SegmentId says in its highest octet what it is the identifier of. */
#define SEGMENT_VXLAN (1ULL << 56)

/* ---- Times --------------------------------------------------------------------- */

uint64_t record_time(int64_t ns)
{
	return ns < 0 ? 0 : (uint64_t)ns / NSEC_PER_MSEC;
}

/* ---- Flows --------------------------------------------------------------------- */

static uint64_t mix_value(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9fb21c651e98df25ULL;
	return hash ^ hash >> 32;
}

static uint64_t mix_address(uint64_t hash, const uint8_t address[16])
{
	uint64_t half[2];

	memcpy(half, address, sizeof(half));
	return mix_value(mix_value(hash, le64toh(half[0])), le64toh(half[1]));
}

/* All records of a flow have the same id. */
static uint64_t flow_id(const struct netobs_flow *flow)
{
	uint64_t rest = (uint64_t)flow->proto << 48 |
			(uint64_t)flow->icmp_type << 40 |
			(uint64_t)flow->icmp_code << 32 |
			(uint64_t)flow->src_port << 16 | flow->dst_port;
	uint64_t hash = mix_address(1, flow->src);

	hash = mix_address(hash, flow->dst);
	hash = mix_value(hash, rest);
	if (flow->has & (NETOBS_HAS_VLAN | NETOBS_HAS_VNI))
		hash = mix_value(hash, (uint64_t)flow->vlan_id << 32 | flow->vni);
	return hash;
}

static uint32_t read_address4(const uint8_t address[16])
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
#define point_direction(member) \
	record->member = direction_index(flow->points[0].member);
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
	/* Both are of the interface that the record names, since collectors look up its name by both. */
	if (in || out)
		record->netns_inode = (in ?: out)->netns_inode;
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
#define fill_hash fill_number
#define fill_tunnel fill_number
#define fill_tcp_flags fill_number
#define fill_dscp(member) record->member = (uint8_t)(flow->member << 2);
#define fill_time(member) record->member = record_time(flow->member);
#define fill_text(member)                                                   \
	safe_utf8_cut(record->member, sizeof(record->member), flow->member, \
		      sizeof(flow->member));
#define fill_bytes(member) \
	memcpy(record->member, flow->member, sizeof(record->member));
#define fill_mac fill_bytes
#define fill_tunnel_end fill_bytes
#define fill_address(member)                                       \
	if (record->ip_version == 4)                               \
		record->member##_v4 = read_address4(flow->member); \
	else                                                       \
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
#define FILL_ends FILL_all
#define FILL_ends_own FILL_all
#define FILL_sampled FILL_all
#define FILL_sampled_own FILL_all
#define FILL(type, member, bit, set, ...) FILL_##set(type, member, bit)
#define FILL_EXPANDED(...) FILL(__VA_ARGS__)

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, json, proto, ipfix, ...) \
	FILL_EXPANDED(type, member, bit, FIELD_ARGUMENTS ipfix)

static void add_record_fields(struct record_flow *record,
			      const struct netobs_flow *flow)
{
#include "catalogue/fields.def"
}

#define copy_number(end, member) record->end##_##member = flow->end->member;
#define copy_count copy_number
#define copy_text(end, member)                                                \
	safe_utf8_cut(record->end##_##member, sizeof(record->end##_##member), \
		      flow->end->member, sizeof(flow->end->member));
#define COPY_END(type, end, member)      \
	if (flow->end) {                 \
		copy_##type(end, member) \
	}
#define COPY_derived(...)
#define COPY_process(type, member)          \
	COPY_END(type, src_process, member) \
	COPY_END(type, dst_process, member)
#define COPY(type, member, set, ...) COPY_##set(type, member)
#define COPY_EXPANDED(...) COPY(__VA_ARGS__)

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, proto, ipfix, ...) \
	COPY_EXPANDED(type, member, FIELD_ARGUMENTS ipfix)

static void add_processes(struct record_flow *record,
			  const struct netobs_flow *flow)
{
#include "catalogue/fields.def"
}

/* One of these is known. */
enum {
	HAS_HEALTH = NETOBS_HAS_RTT | NETOBS_HAS_HANDSHAKE_RTT |
		     NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_APP_LATENCY |
		     NETOBS_HAS_RESPONSE_TIME,
	/* Fields in the templates with processes only. */
	HAS_MORE = NETOBS_HAS_XLAT | NETOBS_HAS_ORIG | NETOBS_HAS_CONVERSATION |
		   NETOBS_HAS_DROPS,
};

enum layout_kind record_from_flow(struct record_flow *record,
				  const struct netobs_flow *flow,
				  const struct layout_options *options)
{
	bool is_icmp = flow->has & NETOBS_HAS_ICMP;
	int set = flow->has & NETOBS_HAS_SAMPLING ? LAYOUT_SAMPLED : 0;
	bool has_more;

	*record = (struct record_flow){
		.flow_id = flow_id(flow),
		.ip_version = flow->ethertype == 0x0800 ? 4 : 6,
	};
	add_record_fields(record, flow);
	add_points(record, flow);
	if (is_icmp)
		add_icmp(record, flow);
	if (flow->has & NETOBS_HAS_VLAN)
		add_vlan(record, flow);
	if (flow->has & NETOBS_HAS_VNI && flow->tunnel == NETOBS_TUNNEL_VXLAN)
		record->segment_id = SEGMENT_VXLAN | flow->vni;
	if (flow->src_process || flow->dst_process)
		add_processes(record, flow);
	set += record->ip_version == 4 ? LAYOUT_FLOW4 : LAYOUT_FLOW6;
	has_more =
		options->is_extended &&
		(flow->src_process || flow->dst_process || flow->has & HAS_MORE);
	if (is_icmp)
		return set + (has_more ? LAYOUT_FLOW4_ICMP_PROCESS :
					 LAYOUT_FLOW4_ICMP);
	if (!options->is_extended)
		return set;
	if (has_more)
		return set + (flow->has & HAS_HEALTH ? LAYOUT_FLOW4_BOTH :
						       LAYOUT_FLOW4_PROCESS);
	return set + (flow->has & HAS_HEALTH ? LAYOUT_FLOW4_HEALTH : 0);
}

/* ---- Records of other types ------------------------------------------------------- */

/* A field at its position in the template; 0 octets: there is none. */
struct field_slot {
	struct record_field field;
	uint16_t octets;  /* of an address: of IPv6 */
	bool has_variant; /* the template of IPv4 has 4 octets */
};

enum { FIELD_SLOTS_MAX = 64 };

#define SLOT_none(...)
#define SLOT_all(kind, member, type, has, at, octets, ...) \
	[at] = { RECORD_FIELD(kind, member, type, has), octets, false },
#define SLOT_own SLOT_all
#define SLOT_text SLOT_all
#define SLOT_time(kind, member, type, has, at, ...) \
	SLOT_all(kind, member, type, has, at, 8)
#define SLOT_address(kind, member, type, has, at, ...) \
	[at] = { RECORD_FIELD(kind, member, type, has), 16, true },
#define SLOT_OF(kind, member, type, has, set, ...) \
	SLOT_##set(kind, member, type, has, __VA_ARGS__)
#define SLOT_EXPANDED(...) SLOT_OF(__VA_ARGS__)

#define RECORD(TYPE, kind, ...) \
	static const struct field_slot slots_of_##kind[FIELD_SLOTS_MAX] = {
#define FIELD(kind, member, type, has, key, proto, ipfix, ...) \
	SLOT_EXPANDED(kind, member, type, has, FIELD_ARGUMENTS ipfix)
#define RECORD_END(...) \
	}               \
	;
#include "catalogue/records.def"

#define LAYOUT4_none(TYPE) LAYOUT_KINDS
#define LAYOUT4_templates(TYPE) LAYOUT_##TYPE##4

static const struct {
	const struct field_slot *slots;
	enum layout_kind layout4; /* that of IPv6 is the next one */
} types[NETOBS_RECORD_TYPES] = {
#define RECORD(TYPE, kind, name, number, Message, templates, ...) \
	[NETOBS_RECORD_##TYPE] = { slots_of_##kind, LAYOUT4_##templates(TYPE) },
#include "catalogue/records.def"
};

/* All addresses but those of ends that may have none yet are ::ffff:a.b.c.d. */
static bool is_ipv4(const struct field_slot *slots,
		    const struct netobs_record *record)
{
	for (int i = 0; i < FIELD_SLOTS_MAX; i++)
		if (slots[i].octets && slots[i].field.type == RECORD_address &&
		    !ip_is_v4(record_at(&slots[i].field, record)))
			return false;
	return true;
}

static void put_number(uint8_t *to, uint64_t value, size_t octets)
{
	const uint8_t u8 = (uint8_t)value;
	const uint16_t u16 = (uint16_t)value;
	const uint32_t u32 = (uint32_t)value;

	memcpy(to,
	       octets == 1 ? (const void *)&u8 :
	       octets == 2 ? (const void *)&u16 :
	       octets == 4 ? (const void *)&u32 :
			     &value,
	       octets);
}

static void put_slot(uint8_t *to, const struct field_slot *slot, size_t octets,
		     const struct netobs_record *record)
{
	const void *at = record_at(&slot->field, record);
	uint64_t number;

	switch (slot->field.type) {
	case RECORD_array:
		safe_utf8_cut((char *)to, octets, at, slot->field.size);
		break;
	case RECORD_address:
	case RECORD_local:
		if (octets == 4)
			put_number(to, read_address4(at), octets);
		else
			memcpy(to, at, octets);
		break;
	default:
		number = record_number(&slot->field, record);
		if (slot->field.type == RECORD_ms)
			number = record_time((int64_t)number);
		put_number(to, number, octets);
	}
}

enum layout_kind record_from_other(uint8_t *to, const struct netobs_record *record)
{
	const struct field_slot *slots = types[record->type].slots;
	const bool is_v4 = is_ipv4(slots, record);

	memset(to, 0, RECORD_OTHER_SIZE);
	for (int i = 0; i < FIELD_SLOTS_MAX; i++) {
		const struct field_slot *slot = &slots[i];
		const size_t octets = slot->has_variant && is_v4 ?
					      slot->octets / 4 :
					      slot->octets;

		if (octets && record_is_known(&slot->field, record))
			put_slot(to, slot, octets, record);
		to += octets;
	}
	return types[record->type].layout4 + !is_v4;
}
