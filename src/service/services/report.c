/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/flow.h>
#include <netobs/session.h>

#include "base/hash.h"
#include "base/util.h"

/* Greater counts are no packets: a record with them is refused. */
#define COUNT_MAX (1ULL << 60)

/* ---- Members of records in JSON -------------------------------------------------------- */

enum member {
	TYPE,
	SRC,
	DST,
	SRC_PORT,
	DST_PORT,
	PROTO,
	ICMP_TYPE,
	ICMP_CODE,
	START_MS,
	END_MS,
	BYTES,
	PACKETS,
	FLAGS,
	COMBINED,
	SAMPLING,
	RTT,
	PATH_RTT,
	RTT_SAMPLES,
	RESPONSE,
	RESPONSES,
	RETRANSMITS,
	XLAT_SRC,
	XLAT_DST,
	XLAT_SRC_PORT,
	XLAT_DST_PORT,
	ORIG_SRC,
	ORIG_DST,
	ORIG_SRC_PORT,
	ORIG_DST_PORT,
	CONVERSATION,
	SRC_PROCESS,
	DST_PROCESS,
	PROCESS,
	INTERFACES,
	DIRECTIONS,
	OPENED,
	ENDED,
	AGENT,
	HOST_NAME,
	HOST_ID,
	MEMBERS,
};

static const char *const names[MEMBERS] = {
	[TYPE] = "type",
	[SRC] = "SrcAddr",
	[DST] = "DstAddr",
	[SRC_PORT] = "SrcPort",
	[DST_PORT] = "DstPort",
	[PROTO] = "Proto",
	[ICMP_TYPE] = "IcmpType",
	[ICMP_CODE] = "IcmpCode",
	[START_MS] = "TimeFlowStartMs",
	[END_MS] = "TimeFlowEndMs",
	[BYTES] = "Bytes",
	[PACKETS] = "Packets",
	[FLAGS] = "Flags",
	[COMBINED] = "TcpCombined",
	[SAMPLING] = "Sampling",
	[RTT] = "TimeFlowRttNs",
	[PATH_RTT] = "PathRttNs",
	[RTT_SAMPLES] = "RttSamples",
	[RESPONSE] = "ResponseTimeNs",
	[RESPONSES] = "AppResponses",
	[RETRANSMITS] = "Retransmits",
	[XLAT_SRC] = "XlatSrcAddr",
	[XLAT_DST] = "XlatDstAddr",
	[XLAT_SRC_PORT] = "XlatSrcPort",
	[XLAT_DST_PORT] = "XlatDstPort",
	[ORIG_SRC] = "OrigSrcAddr",
	[ORIG_DST] = "OrigDstAddr",
	[ORIG_SRC_PORT] = "OrigSrcPort",
	[ORIG_DST_PORT] = "OrigDstPort",
	[CONVERSATION] = "ConversationId",
	[SRC_PROCESS] = "SrcProcess",
	[DST_PROCESS] = "DstProcess",
	[PROCESS] = "Process",
	[INTERFACES] = "Interfaces",
	[DIRECTIONS] = "IfDirections",
	[OPENED] = "Opened",
	[ENDED] = "Ended",
	[AGENT] = "AgentIP",
	[HOST_NAME] = "HostName",
	[HOST_ID] = "HostId",
};

/* @key is behind its quotation mark; names that are looked for have no escapes. */
static bool is_name(const char *key, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(key, name, len) && key[len] == '"';
}

/* All that are there; of those that come twice, the last one. */
static void read_members(struct json_value record,
			 struct json_value members[MEMBERS])
{
	struct json_item item = { 0 };

	memset(members, 0, MEMBERS * sizeof(*members));
	while (json_next(record, &item)) {
		const char *key = item.key.at + 1;

		for (size_t i = 0; i < MEMBERS; i++)
			if (*key == *names[i] && is_name(key, names[i]))
				members[i] = item.value;
	}
}

/* ---- Faces ----------------------------------------------------------------------------- */

static bool read_address(struct json_value value, uint8_t ret_ip[16])
{
	static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };
	char text[NETOBS_ADDR_STR_MAX];

	json_text(value, text, sizeof(text));
	if (inet_pton(AF_INET6, text, ret_ip) == 1)
		return true;
	memcpy(ret_ip, v4_prefix, sizeof(v4_prefix));
	return inet_pton(AF_INET, text, ret_ip + sizeof(v4_prefix)) == 1;
}

/* @first: the source address; the others follow. @return false: it has no addresses */
static bool read_face(const struct json_value *members, enum member src,
		      enum member dst, enum member src_port,
		      enum member dst_port, struct flow_face *ret_face)
{
	*ret_face = (struct flow_face){
		.src_port = (uint16_t)json_number(members[src_port]),
		.dst_port = (uint16_t)json_number(members[dst_port]),
		.proto = (uint8_t)json_number(members[PROTO]),
	};
	return read_address(members[src], ret_face->src) &&
	       read_address(members[dst], ret_face->dst);
}

static void add_other(struct service_report *report, const struct flow_face *face)
{
	if (!flow_face_equal(face, &report->face))
		report->others[report->n_others++] = *face;
}

static void read_others(const struct json_value *members,
			struct service_report *report)
{
	struct flow_face face;

	if (read_face(members, XLAT_SRC, XLAT_DST, XLAT_SRC_PORT, XLAT_DST_PORT,
		      &face))
		add_other(report, &face);
	if (read_face(members, ORIG_SRC, ORIG_DST, ORIG_SRC_PORT, ORIG_DST_PORT,
		      &face))
		add_other(report, &face);
}

/* ---- Kinds of records ------------------------------------------------------------------ */

static bool has_text(struct json_value value, const char *text)
{
	char buf[32];

	return !strcmp(json_text(value, buf, sizeof(buf)), text);
}

static uint64_t hash_point(const char *text, size_t len, uint64_t direction)
{
	uint64_t hash = direction + 1;

	for (size_t i = 0; i < len; i++)
		hash = hash_finish(hash ^ (uint8_t)text[i]);
	return hash;
}

static void read_points(const struct json_value *members,
			struct service_report *report)
{
	struct json_item interface = { 0 }, direction = { 0 };

	while (json_next(members[INTERFACES], &interface)) {
		json_next(members[DIRECTIONS], &direction);
		if (!report->n_points++)
			report->point = hash_point(interface.value.at,
						   json_length(interface.value),
						   json_number(direction.value));
	}
}

/* @return false: it has wrong counts */
static bool read_flow(const struct json_value *members,
		      struct service_report *report)
{
	report->packets = json_number(members[PACKETS]);
	report->bytes = json_number(members[BYTES]);
	report->retransmits = json_number(members[RETRANSMITS]);
	report->rtt_ns =
		json_number(members[members[PATH_RTT].at ? PATH_RTT : RTT]);
	report->rtt_samples = json_number(members[RTT_SAMPLES]);
	report->response_ns = json_number(members[RESPONSE]);
	report->responses = json_number(members[RESPONSES]);
	report->sampling = (uint32_t)json_number(members[SAMPLING]);
	report->tcp_flags = (uint16_t)json_number(members[FLAGS]);
	report->has_combined = members[COMBINED].at;
	report->tcp_combined = (uint8_t)json_number(members[COMBINED]);
	read_points(members, report);
	json_text(members[SRC_PROCESS], report->processes[0], EDGE_NAME_MAX);
	json_text(members[DST_PROCESS], report->processes[1], EDGE_NAME_MAX);
	return report->packets <= COUNT_MAX && report->bytes <= COUNT_MAX;
}

static void read_session(const struct json_value *members,
			 struct service_report *report)
{
	char name[16];

	report->opened = has_text(members[OPENED], "active") ?
				 NETOBS_SESSION_ACTIVE :
			 has_text(members[OPENED], "passive") ?
				 NETOBS_SESSION_PASSIVE :
				 NETOBS_SESSION_OPENED_UNKNOWN;
	json_text(members[ENDED], name, sizeof(name));
	for (unsigned int i = 0; netobs_session_ended_name(i); i++)
		if (!strcmp(name, netobs_session_ended_name(i)))
			report->ended = (uint8_t)i;
	json_text(members[PROCESS], report->processes[0], EDGE_NAME_MAX);
}

static enum report_kind find_kind(struct json_value type)
{
	if (!type.at || has_text(type, "flow"))
		return REPORT_FLOW;
	if (has_text(type, "session"))
		return REPORT_SESSION;
	return has_text(type, "mapping") ? REPORT_MAPPING : REPORT_NONE;
}

/* Of namespaces of one host, the agents have the same name, and mostly the same identity. */
static void read_origin(const struct json_value *members,
			struct report_origin *origin)
{
	char agent[64], name[128], id[48];

	json_text(members[AGENT], agent, sizeof(agent));
	json_text(members[HOST_NAME], name, sizeof(name));
	json_text(members[HOST_ID], id, sizeof(id));
	*origin = (struct report_origin){ 0 };
	if (!*agent && !*name && !*id)
		return;
	snprintf(origin->identity, sizeof(origin->identity), "%s %s %s", agent,
		 name, id);
	if (*name && *agent)
		snprintf(origin->name, sizeof(origin->name), "%s (%s)", name,
			 agent);
	else
		snprintf(origin->name, sizeof(origin->name), "%s",
			 *name	? name :
			 *agent ? agent :
				  id);
}

bool report_read(struct json_value record, struct service_report *ret_report,
		 struct report_origin *ret_origin)
{
	struct json_value members[MEMBERS];
	char id[24];

	read_members(record, members);
	read_origin(members, ret_origin);
	*ret_report = (struct service_report){ .kind = find_kind(members[TYPE]) };
	if (ret_report->kind == REPORT_NONE)
		return true;
	if (!members[PROTO].at || !read_face(members, SRC, DST, SRC_PORT,
					     DST_PORT, &ret_report->face)) {
		/* A socket that has no address yet. */
		if (ret_report->kind != REPORT_SESSION || members[SRC].at)
			return false;
		ret_report->kind = REPORT_NONE;
		return true;
	}
	read_others(members, ret_report);
	ret_report->conversation_id = strtoull(
		json_text(members[CONVERSATION], id, sizeof(id)), NULL, 16);
	ret_report->icmp = (uint16_t)(json_number(members[ICMP_TYPE]) << 8 |
				      (json_number(members[ICMP_CODE]) & 0xff));
	ret_report->start_ms = flow_time_read(members[START_MS]);
	ret_report->end_ms = flow_time_read(members[END_MS]);
	if (ret_report->kind == REPORT_FLOW)
		return read_flow(members, ret_report);
	if (ret_report->kind == REPORT_SESSION)
		read_session(members, ret_report);
	return true;
}

/* ---- Records themselves ---------------------------------------------------------------- */

static struct flow_face make_face(const uint8_t src[16], uint16_t src_port,
				  const uint8_t dst[16], uint16_t dst_port,
				  uint8_t proto)
{
	struct flow_face face = { .src_port = src_port,
				  .dst_port = dst_port,
				  .proto = proto };

	memcpy(face.src, src, sizeof(face.src));
	memcpy(face.dst, dst, sizeof(face.dst));
	return face;
}

static void take_others(const struct netobs_flow *flow,
			struct service_report *report)
{
	struct flow_face face;

	if (flow->has & NETOBS_HAS_XLAT) {
		face = make_face(flow->xlat_src, flow->xlat_src_port,
				 flow->xlat_dst, flow->xlat_dst_port,
				 flow->proto);
		add_other(report, &face);
	}
	if (flow->has & NETOBS_HAS_ORIG) {
		face = make_face(flow->orig_src, flow->orig_src_port,
				 flow->orig_dst, flow->orig_dst_port,
				 flow->proto);
		add_other(report, &face);
	}
}

static void take_process(char name[EDGE_NAME_MAX],
			 const struct netobs_process *process)
{
	if (process)
		snprintf(name, EDGE_NAME_MAX, "%s", process->command);
}

void report_of_flow(const struct netobs_flow *flow,
		    struct service_report *ret_report)
{
	*ret_report = (struct service_report){
		.kind = REPORT_FLOW,
		.face = make_face(flow->src, flow->src_port, flow->dst,
				  flow->dst_port, flow->proto),
		.conversation_id = flow->conversation_id,
		.icmp = (uint16_t)(flow->icmp_type << 8 | flow->icmp_code),
		.start_ms = flow->start_ns / NSEC_PER_MSEC,
		.end_ms = flow->end_ns / NSEC_PER_MSEC,
		.packets = flow->packets,
		.bytes = flow->bytes,
		.retransmits = flow->retransmits,
		.rtt_ns = flow->path_rtt_ns ?: flow->rtt_ns,
		.rtt_samples = flow->rtt_samples,
		.response_ns = flow->response_time_ns,
		.responses = flow->app_responses,
		.sampling = flow->sampling,
		.tcp_flags = flow->tcp_flags,
		.tcp_combined = flow->tcp_combined,
		.has_combined = flow->has & NETOBS_HAS_TCP,
	};
	take_others(flow, ret_report);
	take_process(ret_report->processes[0], flow->src_process);
	take_process(ret_report->processes[1], flow->dst_process);
}

void report_of_session(const struct netobs_session *session,
		       struct service_report *ret_report)
{
	static const uint8_t none[16] = { 0 };

	*ret_report = (struct service_report){
		.kind = memcmp(session->local_addr, none, sizeof(none)) ?
				REPORT_SESSION :
				REPORT_NONE,
		.face = make_face(session->local_addr, session->local_port,
				  session->remote_addr, session->remote_port,
				  session->protocol),
		.conversation_id = session->conversation_id,
		.start_ms = session->start_ns / NSEC_PER_MSEC,
		.end_ms = session->end_ns / NSEC_PER_MSEC,
		.opened = session->opened,
		.ended = session->ended,
	};
	snprintf(ret_report->processes[0], EDGE_NAME_MAX, "%s", session->process);
}
