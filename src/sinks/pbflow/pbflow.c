// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pbflow.h"

#include "flow.pb-c.h"
#include "record/fields.h"
#include "base/utf8.h"
#include "base/util.h"

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

	/* By these flowlogs-pipeline recognises the ends of connections. */
	SYN_AND_ACK = 0x100,
	FIN_AND_ACK = 0x200,
	RST_AND_ACK = 0x400,

	ENTRY_TAG = 1 << 3 | 2, /* Records.entries: field 1, with a length */
};

/* Of a field that is a message itself. */
union part {
	Pbflow__Timestamp time;
	Pbflow__IP ip;
};

#define FIELD(member, ...) union part member;
#define POINT_FIELD(...)

/* A record and the messages in it, with the names that the catalogue has for them. */
struct message {
	Pbflow__Record record;
	Pbflow__DataLink data_link;
	Pbflow__Network network;
	Pbflow__Transport transport;
	Pbflow__Tunnel tunnel;
	Pbflow__Duration rtt;
	Pbflow__IP agent;
	struct {
#include "record/fields.def"
	} parts;
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
 * beside a SYN+ACK, for one, cannot be distinguished from it.
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

/* ---- Points ---------------------------------------------------------------------- */

/* Readers refuse the whole message if a string in it is not UTF-8. */
static char *repair(struct message *m, size_t i, const char *name)
{
	name = name ?: "unknown";
	assert(strlen(name) <= PACK_NAME_MAX);
	return (char *)utf8_repair(name, m->names[i]);
}

#define point_number(member, message, number, name) entry->name = point->member;
#define point_direction point_number
#define point_netns point_number
#define point_name(member, message, number, name) \
	entry->name = repair(m, i, point->member);

#define FIELD(...)
#define POINT_FIELD(member, type, json, proto, ...) \
	FIELD_CALL(point_##type, member, proto)

static void set_point(struct message *m, size_t i,
		      const struct netobs_point *point)
{
	Pbflow__DupMapEntry *entry = &m->points[i];

	pbflow__dup_map_entry__init(entry);
#include "record/fields.def"
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

/* ---- Fields ---------------------------------------------------------------------- */

/* An address of a tunnel says itself whether it is of IPv4. */
static bool is_v4_mapped(const uint8_t address[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, 0xff };

	return !memcmp(address, v4, sizeof(v4));
}

#define netobserv record /* one message */

#define put_number(member, message, number, name) \
	m->message.name = flow->member;
#define put_count put_number
#define put_dscp put_number
#define put_tcp_flags put_number

/* In a oneof of its own, whose case is the number: so 0 is not "not known". */
#define put_id(member, message, number, name, oneof) \
	m->message.oneof##_case = number;            \
	m->message.name = flow->member;

#define put_time(member, message, number, name)        \
	set_time(&m->parts.member.time, flow->member); \
	m->message.name = &m->parts.member.time;

#define put_ip(member, message, name, is_v4)              \
	set_ip(&m->parts.member.ip, flow->member, is_v4); \
	m->message.name = &m->parts.member.ip;
#define put_address(member, message, number, name) \
	put_ip(member, message, name, flow->ethertype != ETHERTYPE_IPV6)
#define put_tunnel_end(member, message, number, name) \
	put_ip(member, message, name, is_v4_mapped(flow->member))

#define put_mac(member, message, number, name) \
	m->message.name = mac_number(flow->member);
#define put_tcp_combined(member, message, number, name) \
	m->message.name = tcp_flags(flow);
#define put_tunnel(member, message, number, name) \
	m->message.name = flow->member;           \
	m->record.tunnel = &m->tunnel;

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, json, proto, ...) \
	if (field_is_known(flow, bit)) {                  \
		FIELD_CALL(put_##type, member, proto)     \
	}

static void set_fields(struct message *m, const struct netobs_flow *flow)
{
#include "record/fields.def"
}

#undef netobserv

/* Where NetObserv's fields mean something else than ours. */
static void set_netobserv(Pbflow__Record *record, const struct netobs_flow *flow)
{
	if (!(flow->has & NETOBS_HAS_MAC))
		record->bytes = flow->bytes;
	/* Readers cut it to 32 bits; that many are not in one interval. */
	record->packets = min_u64(flow->packets, UINT32_MAX);
}

static void set_options(struct message *m, const struct pbflow_options *options)
{
	m->record.sampling = options->sampling > 1 ? options->sampling : 0;
	if (!memcmp(options->agent_ip, nowhere, sizeof(nowhere)))
		return;
	set_ip(&m->agent, options->agent_ip, is_v4_mapped(options->agent_ip));
	m->record.agent_ip = &m->agent;
}

static void set_messages(struct message *m)
{
	pbflow__record__init(&m->record);
	pbflow__data_link__init(&m->data_link);
	pbflow__network__init(&m->network);
	pbflow__transport__init(&m->transport);
	pbflow__tunnel__init(&m->tunnel);
	pbflow__duration__init(&m->rtt);
	m->record.data_link = &m->data_link;
	m->record.network = &m->network;
	m->record.transport = &m->transport;
	m->record.time_flow_rtt = &m->rtt;
}

size_t pbflow_record(const struct netobs_flow *flow,
		     const struct pbflow_options *options, uint8_t *buf)
{
	struct message m;

	set_messages(&m);
	set_fields(&m, flow);
	set_netobserv(&m.record, flow);
	set_points(&m, flow);
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
