// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records are written straight from the catalogue: messages of a library in between
 * would cost a record twice the time, and a copy. Fields are not in the order of their
 * numbers, which readers must not rely on. The tests read records with protobuf-c.
 */
#include "pbflow.h"

#include "catalogue/direction.h"
#include "catalogue/fields.h"
#include "wire.h"
#include "base/util.h"

#include <assert.h>
#include <net/ethernet.h>
#include <string.h>

enum {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_CWR = 0x80,
	TCP_KINDS = TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK,

	/* flowlogs-pipeline recognises the ends of connections by these. */
	SYN_AND_ACK = 0x100,
	FIN_AND_ACK = 0x200,
	RST_AND_ACK = 0x400,
};

/* Numbers in flow.proto.in that the catalogue does not have. */
enum {
	RECORDS_ENTRIES = 1,

	RECORD_DIRECTION = 2,
	RECORD_BYTES = 8,
	RECORD_AGENT_IP = 12,
	RECORD_TIME_FLOW_RTT = 24,
	RECORD_DUP_LIST = 26,
	RECORD_DROP_PACKETS = 1032,
	RECORD_DROP_BYTES = 1033,

	TIMESTAMP_SECONDS = 1,
	TIMESTAMP_NANOS = 2,
};

/* The messages that the catalogue names; their numbers in Record. */
enum message {
	MESSAGE_netobserv = 0,
	MESSAGE_record = 0,
	MESSAGE_data_link = 5,
	MESSAGE_network = 6,
	MESSAGE_transport = 7,
	MESSAGE_xlat = 28,
	MESSAGE_tunnel = 1008,
};

/* ---- Values ------------------------------------------------------------------------ */

static uint8_t *put_time(uint8_t *to, uint32_t number, int64_t ns)
{
	int64_t seconds = ns / NSEC_PER_SEC, nanos = ns % NSEC_PER_SEC;
	uint8_t *contents = put_begin(to, number);

	if (nanos < 0) { /* before 1970; nanos count forward */
		seconds--;
		nanos += NSEC_PER_SEC;
	}
	to = put_number(contents, TIMESTAMP_SECONDS, (uint64_t)seconds);
	return put_end(contents,
		       put_number(to, TIMESTAMP_NANOS, (uint64_t)nanos));
}

static uint8_t *put_duration(uint8_t *to, uint32_t number, uint64_t ns)
{
	return put_time(to, number, (int64_t)min_u64(ns, INT64_MAX));
}

/* Readers refuse the whole message if a string in it is not UTF-8. */
static uint8_t *put_pb_text(uint8_t *to, uint32_t number, const char *text)
{
	uint8_t *contents = put_begin(to, number);
	const char *repaired;
	size_t len;

	text = text ?: "unknown";
	if (!*text)
		return to;
	assert(strlen(text) <= PACK_NAME_MAX);
	repaired = utf8_repair(text, (char *)contents);
	len = strlen(repaired);
	if (repaired == text)
		memcpy(contents, text, len);
	return put_end(contents, contents + len);
}

inlined uint64_t mac_number(const uint8_t mac[6])
{
	uint64_t number = 0;

	for (int i = 0; i < 6; i++)
		number = number << 8 | mac[i];
	return number;
}

/* NetObserv takes one bit, the lowest, of each packet that is of no kind. */
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

#define point_number(member, message, number, name) \
	to = put_number(to, number, point->member);
#define point_direction(member, message, number, name) \
	to = put_number(to, number, direction_index(point->member));
#define point_netns point_number
#define point_name(member, message, number, name) \
	to = put_pb_text(to, number, point->member);

#define FIELD(...)
#define POINT_FIELD(member, type, json, proto, ...) \
	FIELD_CALL(point_##type, member, proto)

/* Readers need one. */
static uint8_t *put_points(uint8_t *to, const struct netobs_flow *flow)
{
	static const struct netobs_point unknown;
	const struct netobs_point *point = flow->n_points ? flow->points :
							    &unknown;
	uint64_t n = max_u64(min_u64(flow->n_points, PACK_POINTS_MAX), 1);

	to = put_number(to, RECORD_DIRECTION, direction_index(point->direction));
	for (const struct netobs_point *end = point + n; point < end; point++) {
		uint8_t *contents = put_begin(to, RECORD_DUP_LIST);

		to = contents;
#include "catalogue/fields.def"
		put_end(contents, to);
	}
	return to;
}

/* ---- Fields ---------------------------------------------------------------------- */

/* Readers cut it to 32 bits; that many are not in one interval. */
#define VALUE_packets ~, min_u64(flow->packets, UINT32_MAX)
/* Readers take these modulo 65536. */
#define VALUE_drop_packets ~, min_u64(flow->drop_packets, UINT16_MAX)
#define VALUE_drop_bytes ~, min_u64(flow->drop_bytes, UINT16_MAX)
#define VALUE(member) FIELD_CHOOSE(VALUE_##member, flow->member)

#define PUT(message, put, ...)         \
	if (MESSAGE_##message == here) \
		to = put(to, __VA_ARGS__);

#define put_type_number(member, message, number, name) \
	PUT(message, put_number, number, VALUE(member))
#define put_type_count put_type_number
#define put_type_hash put_type_number
#define put_type_dscp put_type_number
#define put_type_tcp_flags put_type_number
#define put_type_tunnel put_type_number
/* In a oneof of its own: so 0 is not "not known". */
#define put_type_id(member, message, number, name, oneof) \
	PUT(message, put_any_number, number, flow->member)
#define put_type_time(member, message, number, name) \
	PUT(message, put_time, number, flow->member)
#define put_type_duration(member, message, number, name) \
	PUT(message, put_duration, number, flow->member)
#define put_type_address(member, message, number, name) \
	PUT(message, put_ip, number, flow->member,      \
	    flow->ethertype != ETHERTYPE_IPV6)
#define put_type_tunnel_end(member, message, number, name) \
	PUT(message, put_ip, number, flow->member, is_v4_mapped(flow->member))
#define put_type_mac(member, message, number, name) \
	PUT(message, put_number, number, mac_number(flow->member))
#define put_type_text(member, message, number, name) \
	PUT(message, put_array, number, flow->member, sizeof(flow->member))
#define put_type_tcp_combined(member, message, number, name) \
	PUT(message, put_number, number, tcp_flags(flow))

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, json, proto, ...)  \
	if (field_is_known(flow, bit)) {                   \
		FIELD_CALL(put_type_##type, member, proto) \
	}

/* Put the fields of one message. */
inlined uint8_t *put_fields(uint8_t *to, const struct netobs_flow *flow,
			    enum message here)
{
#include "catalogue/fields.def"
	return to;
}

/* ---- Processes -------------------------------------------------------------------- */

#define process_number(number, member) \
	to = put_number(to, number, process->member);
#define process_count process_number
#define process_text(number, member) \
	to = put_array(to, number, process->member, sizeof(process->member));
#define SOURCE_NUMBER(type, member, source, destination, name) \
	process_##type(source, member)
#define DESTINATION_NUMBER(type, member, source, destination, name) \
	process_##type(destination, member)
#define PROCESS_NUMBER(which, ...) which(__VA_ARGS__)

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, proto, ...) \
	PROCESS_NUMBER(SOURCE_NUMBER, type, member, FIELD_ARGUMENTS proto)

static uint8_t *put_source(uint8_t *to, const struct netobs_process *process)
{
#include "catalogue/fields.def"
	return to;
}

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, proto, ...) \
	PROCESS_NUMBER(DESTINATION_NUMBER, type, member, FIELD_ARGUMENTS proto)

static uint8_t *put_destination(uint8_t *to, const struct netobs_process *process)
{
#include "catalogue/fields.def"
	return to;
}

inlined uint8_t *put_message(uint8_t *to, const struct netobs_flow *flow,
			     enum message here)
{
	uint8_t *contents = put_begin(to, here);

	return put_end(contents, put_fields(contents, flow, here));
}

size_t pbflow_record(const struct netobs_flow *flow,
		     const struct pbflow_options *options, uint8_t *buf)
{
	uint8_t *to = put_fields(buf, flow, MESSAGE_record);

	if (!(flow->has & NETOBS_HAS_MAC))
		to = put_number(to, RECORD_BYTES, flow->bytes);
	to = put_message(to, flow, MESSAGE_data_link);
	to = put_message(to, flow, MESSAGE_network);
	to = put_message(to, flow, MESSAGE_transport);
	if (flow->has & NETOBS_HAS_TUNNEL)
		to = put_message(to, flow, MESSAGE_tunnel);
	if (flow->has & (NETOBS_HAS_XLAT | NETOBS_HAS_ZONE))
		to = put_message(to, flow, MESSAGE_xlat);
	if (flow->has & NETOBS_HAS_DROPS) {
		to = put_number(to, RECORD_DROP_PACKETS, flow->drop_packets);
		to = put_number(to, RECORD_DROP_BYTES, flow->drop_bytes);
	}
	to = put_points(to, flow);
	if (flow->src_process)
		to = put_source(to, flow->src_process);
	if (flow->dst_process)
		to = put_destination(to, flow->dst_process);
	if (!(flow->has & NETOBS_HAS_RTT)) { /* readers need it */
		to = put_begin(to, RECORD_TIME_FLOW_RTT);
		to = put_end(to, to);
	}
	to = put_agent(to, RECORD_AGENT_IP, options->agent_ip);
	return (size_t)(to - buf);
}

size_t pbflow_entry(const struct netobs_flow *flow,
		    const struct pbflow_options *options, uint8_t *buf)
{
	uint8_t *record = buf + PBFLOW_ENTRY_MAX - PBFLOW_RECORD_MAX;
	size_t len = pbflow_record(flow, options, record);

	return (size_t)(put_moved(buf, RECORDS_ENTRIES, record, len) - buf);
}
