/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/flow.h>
#include <netobs/session.h>

#include "base/hash.h"
#include "base/util.h"
#include "service/annotate/flow_fields.h"

/* Greater ones are no counts: a record with them is refused. */
#define COUNT_MAX (1ULL << 53)
#define PRODUCT_MAX (1ULL << 60) /* of a time and how often it was measured */
#define TIME_MAX_MS ((uint64_t)(INT64_MAX / NSEC_PER_MSEC)) /* year 2262 */

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
	SRC_CONTAINER,
	SRC_POD,
	SRC_NAMESPACE,
	DST_CONTAINER,
	DST_POD,
	DST_NAMESPACE,
	CONTAINER,
	POD,
	NAMESPACE,
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
	[SRC_CONTAINER] = "SrcContainerName",
	[SRC_POD] = "SrcPodName",
	[SRC_NAMESPACE] = "SrcPodNamespace",
	[DST_CONTAINER] = "DstContainerName",
	[DST_POD] = "DstPodName",
	[DST_NAMESPACE] = "DstPodNamespace",
	[CONTAINER] = "ContainerName",
	[POD] = "PodName",
	[NAMESPACE] = "PodNamespace",
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

struct reading {
	struct json_value members[MEMBERS];
	struct service_report *report;
	char *why; /* REPORT_WHY_MAX bytes; "": nothing is wrong so far */
};

static bool is_json(struct json_value value, const char *text)
{
	const size_t len = strlen(text);

	return json_length(value) == len && !strncmp(value.at, text, len);
}

/*
 * Tables have a column for each member, also for those that a record lacks: these have the values
 * that packaging/clickhouse gives them.
 */
static bool is_default(size_t member, struct json_value value)
{
	static const char *const texts[MEMBERS] = {
		[TYPE] = "\"\"",       [COMBINED] = "-1",
		[PATH_RTT] = "0",      [XLAT_SRC] = "\"::\"",
		[XLAT_DST] = "\"::\"", [ORIG_SRC] = "\"::\"",
		[ORIG_DST] = "\"::\"",
	};

	return texts[member] && is_json(value, texts[member]);
}

/* All that are there and are not null; of those that come twice, the last one. */
static void read_members(struct json_value record,
			 struct json_value members[MEMBERS])
{
	struct json_item item = { 0 };

	while (json_next(record, &item)) {
		const char *key = item.key.at + 1;

		if (*item.value.at == 'n')
			continue;
		for (size_t i = 0; i < MEMBERS; i++)
			if (*key == *names[i] && is_name(key, names[i]) &&
			    !is_default(i, item.value))
				members[i] = item.value;
	}
}

/* ---- Values ---------------------------------------------------------------------------- */

static uint64_t check_number(struct reading *reading, enum member member,
			     struct json_value value, uint64_t most)
{
	uint64_t number = 0;

	if (!flow_number_read(value, most, &number))
		snprintf(reading->why, REPORT_WHY_MAX,
			 "%s is no whole number from 0 to %" PRIu64,
			 names[member], most);
	return number;
}

/* @return 0, too, where it is absent or wrong */
static uint64_t take_number(struct reading *reading, enum member member,
			    uint64_t most)
{
	const struct json_value value = reading->members[member];

	return value.at ? check_number(reading, member, value, most) : 0;
}

static void take_address(struct reading *reading, enum member member,
			 uint8_t ret_ip[16])
{
	if (!flow_address_read(reading->members[member], ret_ip))
		snprintf(reading->why, REPORT_WHY_MAX, "%s is no address",
			 names[member]);
}

/* Up to 16 hexadecimal digits. */
static uint64_t take_id(struct reading *reading)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	char text[32];
	const char *id =
		json_text(reading->members[CONVERSATION], text, sizeof(text));

	if (id[strspn(id, digits)] || strlen(id) > 16)
		snprintf(reading->why, REPORT_WHY_MAX,
			 "%s is no number of 64 bits in hexadecimal",
			 names[CONVERSATION]);
	return strtoull(id, NULL, 16);
}

/* ---- Faces ----------------------------------------------------------------------------- */

/* @src: the member with the source address; the others likewise */
static struct flow_face take_face(struct reading *reading, enum member src,
				  enum member dst, enum member src_port,
				  enum member dst_port)
{
	struct flow_face face = {
		.src_port = (uint16_t)take_number(reading, src_port, UINT16_MAX),
		.dst_port = (uint16_t)take_number(reading, dst_port, UINT16_MAX),
		.proto = (uint8_t)take_number(reading, PROTO, UINT8_MAX),
	};

	take_address(reading, src, face.src);
	take_address(reading, dst, face.dst);
	return face;
}

static void add_other(struct service_report *report, const struct flow_face *face)
{
	if (!flow_face_equal(face, &report->face))
		report->others[report->n_others++] = *face;
}

static void read_others(struct reading *reading)
{
	const struct json_value *members = reading->members;
	struct flow_face face;

	if (members[XLAT_SRC].at && members[XLAT_DST].at) {
		face = take_face(reading, XLAT_SRC, XLAT_DST, XLAT_SRC_PORT,
				 XLAT_DST_PORT);
		add_other(reading->report, &face);
	}
	if (members[ORIG_SRC].at && members[ORIG_DST].at) {
		face = take_face(reading, ORIG_SRC, ORIG_DST, ORIG_SRC_PORT,
				 ORIG_DST_PORT);
		add_other(reading->report, &face);
	}
}

/* ---- Kinds of records ------------------------------------------------------------------ */

static bool has_text(struct json_value value, const char *text)
{
	char buf[32];

	return !strcmp(json_text(value, buf, sizeof(buf)), text);
}

/* ---- Workloads -------------------------------------------------------------------------- */

/* As group records show them. Others are no names, and could be anything on a terminal. */
static void name_workload(char *name, const char *container, const char *pod,
			  const char *namespace)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

	if (*pod)
		snprintf(name, REPORT_WORKLOAD_MAX, "%.63s%s%.127s", namespace,
			 *namespace ? "/" : "", pod);
	else
		snprintf(name, REPORT_WORKLOAD_MAX, "%.63s", container);
	if (name[strspn(name, letters)])
		*name = '\0';
}

/* @container: its member; the two behind it are those of the pod */
static void read_workload(const struct json_value *members,
			  enum member container, char *ret_name)
{
	char texts[3][REPORT_WORKLOAD_MAX];

	for (int i = 0; i < 3; i++)
		json_text(members[container + (enum member)i], texts[i],
			  sizeof(texts[i]));
	name_workload(ret_name, texts[0], texts[1], texts[2]);
}

static uint64_t hash_point(const char *text, size_t len, uint64_t direction)
{
	uint64_t hash = direction + 1;

	for (size_t i = 0; i < len; i++)
		hash = hash_finish(hash ^ (uint8_t)text[i]);
	return hash;
}

static void read_points(struct reading *reading)
{
	struct service_report *report = reading->report;
	struct json_item interface = { 0 }, direction = { 0 };

	while (json_next(reading->members[INTERFACES], &interface)) {
		uint64_t way = 0;

		if (json_next(reading->members[DIRECTIONS], &direction))
			way = check_number(reading, DIRECTIONS, direction.value,
					   UINT8_MAX);
		if (!report->n_points++)
			report->point = hash_point(interface.value.at,
						   json_length(interface.value),
						   way);
	}
}

/* A mean time, which is multiplied by how many there were. */
static uint64_t take_mean(struct reading *reading, enum member member, uint64_t n)
{
	const uint64_t time_ns = take_number(reading, member, COUNT_MAX);
	uint64_t sum;

	if (__builtin_mul_overflow(time_ns, n, &sum) || sum > PRODUCT_MAX)
		snprintf(reading->why, REPORT_WHY_MAX,
			 "%s is too long for %" PRIu64 " measurements",
			 names[member], n);
	return time_ns;
}

static void read_flow(struct reading *reading)
{
	const struct json_value *members = reading->members;
	struct service_report *report = reading->report;

	report->packets = take_number(reading, PACKETS, COUNT_MAX);
	report->bytes = take_number(reading, BYTES, COUNT_MAX);
	report->retransmits = take_number(reading, RETRANSMITS, COUNT_MAX);
	report->rtt_samples = take_number(reading, RTT_SAMPLES, COUNT_MAX);
	report->rtt_ns = take_mean(reading, members[PATH_RTT].at ? PATH_RTT : RTT,
				   report->rtt_samples);
	report->responses = take_number(reading, RESPONSES, COUNT_MAX);
	report->response_ns = take_mean(reading, RESPONSE, report->responses);
	report->sampling = (uint32_t)take_number(reading, SAMPLING, UINT32_MAX);
	report->tcp_flags = (uint16_t)take_number(reading, FLAGS, UINT16_MAX);
	report->has_combined = members[COMBINED].at;
	report->tcp_combined = (uint8_t)take_number(reading, COMBINED, UINT8_MAX);
	read_points(reading);
	json_text(members[SRC_PROCESS], report->processes[0], EDGE_NAME_MAX);
	json_text(members[DST_PROCESS], report->processes[1], EDGE_NAME_MAX);
	read_workload(members, SRC_CONTAINER, report->workloads[0]);
	read_workload(members, DST_CONTAINER, report->workloads[1]);
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
	read_workload(members, CONTAINER, report->workloads[0]);
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

static void read_report(struct reading *reading)
{
	struct service_report *report = reading->report;

	report->face = take_face(reading, SRC, DST, SRC_PORT, DST_PORT);
	read_others(reading);
	report->conversation_id = take_id(reading);
	report->icmp = (uint16_t)(take_number(reading, ICMP_TYPE, UINT8_MAX) << 8 |
				  take_number(reading, ICMP_CODE, UINT8_MAX));
	report->start_ms = (int64_t)take_number(reading, START_MS, TIME_MAX_MS);
	report->end_ms = (int64_t)take_number(reading, END_MS, TIME_MAX_MS);
	if (report->kind == REPORT_FLOW)
		read_flow(reading);
	else if (report->kind == REPORT_SESSION)
		read_session(reading->members, report);
}

bool report_read(struct json_value record, struct service_report *ret_report,
		 struct report_origin *ret_origin, char ret_why[REPORT_WHY_MAX])
{
	struct reading reading = { .report = ret_report, .why = ret_why };
	const struct json_value *members = reading.members;

	*ret_why = '\0';
	read_members(record, reading.members);
	read_origin(members, ret_origin);
	*ret_report = (struct service_report){ .kind = find_kind(members[TYPE]) };
	/* A socket that has no address yet. */
	if (ret_report->kind == REPORT_SESSION &&
	    (!members[SRC].at || is_json(members[SRC], "\"::\"")))
		ret_report->kind = REPORT_NONE;
	if (ret_report->kind == REPORT_NONE)
		return true;
	if (!members[PROTO].at || !members[SRC].at || !members[DST].at)
		snprintf(ret_why, REPORT_WHY_MAX, "it is no record of netobs");
	else
		read_report(&reading);
	return !*ret_why;
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

static void take_process(struct service_report *report, int end,
			 const struct netobs_process *process)
{
	if (!process)
		return;
	snprintf(report->processes[end], EDGE_NAME_MAX, "%s", process->command);
	name_workload(report->workloads[end], process->container_name,
		      process->pod_name, process->pod_namespace);
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
	take_process(ret_report, 0, flow->src_process);
	take_process(ret_report, 1, flow->dst_process);
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
	name_workload(ret_report->workloads[0], session->container_name,
		      session->pod_name, session->pod_namespace);
}
