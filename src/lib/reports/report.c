/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services.h"

#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>
#include <netobs/session.h>

#include "base/text.h"
#include "base/util.h"
#include <inttypes.h>
#include <stdlib.h>

/* Add another tuple of the same packets, unless it is that of the record. */
static void add_face(struct service_report *report, struct flow_face face)
{
	if (!flow_face_equal(&face, &report->face))
		report->others[report->n_others++] = face;
}

/*
 * Name a workload as group records show it. Other letters than theirs are no names, and could be anything
 * on a terminal: "". @ret_name has REPORT_WORKLOAD_MAX bytes.
 */
static void name_workload(char *ret_name, const char *container,
			  const char *pod, const char *namespace)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

	if (*pod)
		snprintf(ret_name, REPORT_WORKLOAD_MAX, "%.63s%s%.127s",
			 namespace, *namespace ? "/" : "", pod);
	else
		snprintf(ret_name, REPORT_WORKLOAD_MAX, "%.127s", container);
	if (ret_name[strspn(ret_name, letters)])
		*ret_name = '\0';
}

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
	if (flow->has & NETOBS_HAS_XLAT)
		add_face(report, make_face(flow->xlat_src, flow->xlat_src_port,
					   flow->xlat_dst, flow->xlat_dst_port,
					   flow->proto));
	if (flow->has & NETOBS_HAS_ORIG)
		add_face(report, make_face(flow->orig_src, flow->orig_src_port,
					   flow->orig_dst, flow->orig_dst_port,
					   flow->proto));
}

static void take_process(struct service_report *report, int end,
			 const struct netobs_process *process)
{
	if (!process)
		return;
	snprintf(report->processes[end], REPORT_PROCESS_MAX, "%s",
		 process->command);
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
		.start_ns = flow->start_ns,
		.packets = flow->packets,
		.bytes = flow->bytes,
		.retransmits = flow->retransmits,
		.retransmitted_bytes = flow->retransmitted_bytes,
		.late_unknown = flow->late_unknown,
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
	*ret_report = (struct service_report){
		.kind = ip_is_any(session->local_addr) ? REPORT_NONE :
							 REPORT_SESSION,
		.face = make_face(session->local_addr, session->local_port,
				  session->remote_addr, session->remote_port,
				  session->protocol),
		.conversation_id = session->conversation_id,
		.start_ms = session->start_ns / NSEC_PER_MSEC,
		.end_ms = session->end_ns / NSEC_PER_MSEC,
		.opened = session->opened,
		.ended = session->ended,
	};
	snprintf(ret_report->processes[0], REPORT_PROCESS_MAX, "%s",
		 session->process);
	name_workload(ret_report->workloads[0], session->container_name,
		      session->pod_name, session->pod_namespace);
}

/* ---- Records as JSON ----------------------------------------------------------------- */

#define TIME_MAX_MS ((uint64_t)(INT64_MAX / NSEC_PER_MSEC)) /* year 2262 */

/* Greater ones are no counts: a record with them is refused. */
#define COUNT_MAX (1ULL << 53)
#define PRODUCT_MAX (1ULL << 60) /* of a time, and its number of samples */

/* ---- The members of a record's JSON that the service map uses, and their values -------- */

#define REPORT_MEMBERS(X)                    \
	X(TYPE, "type")                      \
	X(SRC, "SrcAddr")                    \
	X(DST, "DstAddr")                    \
	X(SRC_PORT, "SrcPort")               \
	X(DST_PORT, "DstPort")               \
	X(PROTO, "Proto")                    \
	X(ICMP_TYPE, "IcmpType")             \
	X(ICMP_CODE, "IcmpCode")             \
	X(START_MS, "TimeFlowStartMs")       \
	X(END_MS, "TimeFlowEndMs")           \
	X(BYTES, "Bytes")                    \
	X(PACKETS, "Packets")                \
	X(FLAGS, "Flags")                    \
	X(COMBINED, "TcpCombined")           \
	X(SAMPLING, "Sampling")              \
	X(RTT, "TimeFlowRttNs")              \
	X(PATH_RTT, "PathRttNs")             \
	X(RTT_SAMPLES, "RttSamples")         \
	X(RESPONSE, "ResponseTimeNs")        \
	X(RESPONSES, "AppResponses")         \
	X(RETRANSMITS, "Retransmits")        \
	X(RESENT, "BytesRetransmitted")      \
	X(LATE_UNKNOWN, "LateUnknown")       \
	X(XLAT_SRC, "XlatSrcAddr")           \
	X(XLAT_DST, "XlatDstAddr")           \
	X(XLAT_SRC_PORT, "XlatSrcPort")      \
	X(XLAT_DST_PORT, "XlatDstPort")      \
	X(ORIG_SRC, "OrigSrcAddr")           \
	X(ORIG_DST, "OrigDstAddr")           \
	X(ORIG_SRC_PORT, "OrigSrcPort")      \
	X(ORIG_DST_PORT, "OrigDstPort")      \
	X(CONVERSATION, "ConversationId")    \
	X(SRC_PROCESS, "SrcProcess")         \
	X(DST_PROCESS, "DstProcess")         \
	X(PROCESS, "Process")                \
	X(SRC_CONTAINER, "SrcContainerName") \
	X(SRC_POD, "SrcPodName")             \
	X(SRC_NAMESPACE, "SrcPodNamespace")  \
	X(DST_CONTAINER, "DstContainerName") \
	X(DST_POD, "DstPodName")             \
	X(DST_NAMESPACE, "DstPodNamespace")  \
	X(CONTAINER, "ContainerName")        \
	X(POD, "PodName")                    \
	X(NAMESPACE, "PodNamespace")         \
	X(OPENED, "Opened")                  \
	X(ENDED, "Ended")                    \
	X(AGENT, "AgentIP")                  \
	X(HOST_NAME, "HostName")             \
	X(HOST_ID, "HostId")

#define REPORT_MEMBER(member, name) MEMBER_##member,
enum member { REPORT_MEMBERS(REPORT_MEMBER) MEMBERS };
#undef REPORT_MEMBER

struct members {
	struct json_value values[MEMBERS];
	char *why; /* REPORT_WHY_MAX bytes: the value that is wrong, and why; "": none so far */
};

#define REPORT_NAME(member, name) [MEMBER_##member] = (name),
static const char *const names[MEMBERS] = { REPORT_MEMBERS(REPORT_NAME) };
#undef REPORT_NAME

/* @key is behind its quotation mark; names that are looked for have no escapes. */
static bool is_name(const char *key, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(key, name, len) && key[len] == '"';
}

static bool members_is_json(struct json_value value, const char *text)
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
		[MEMBER_TYPE] = "\"\"",	      [MEMBER_COMBINED] = "-1",
		[MEMBER_PATH_RTT] = "0",      [MEMBER_XLAT_SRC] = "\"::\"",
		[MEMBER_XLAT_DST] = "\"::\"", [MEMBER_ORIG_SRC] = "\"::\"",
		[MEMBER_ORIG_DST] = "\"::\"",
	};

	return texts[member] && members_is_json(value, texts[member]);
}

/* Read all members that are there and are not null; of those that come twice, the last one. */
static void members_read(struct json_value record, struct members *ret_members)
{
	struct json_item item = { 0 };

	while (json_next(record, &item)) {
		const char *key = item.key.at + 1;

		if (*item.value.at == 'n')
			continue;
		for (size_t i = 0; i < MEMBERS; i++)
			if (*key == *names[i] && is_name(key, names[i]) &&
			    !is_default(i, item.value))
				ret_members->values[i] = item.value;
	}
}

/* @return 0, too, where it is wrong */
static uint64_t members_number(const struct members *members,
			       enum member member, uint64_t most)
{
	const struct json_value value = members->values[member];
	uint64_t number = 0;

	if (value.at && !flow_number_read(value, most, &number))
		snprintf(members->why, REPORT_WHY_MAX,
			 "%s is no whole number from 0 to %" PRIu64,
			 names[member], most);
	return number;
}

static uint64_t members_count(const struct members *members, enum member member)
{
	return members_number(members, member, COUNT_MAX);
}

/* @return a mean time multiplied by @n, the number of its samples; 0, too, where it is absent or wrong */
static uint64_t members_mean(const struct members *members, enum member member,
			     uint64_t n)
{
	const uint64_t time_ns = members_count(members, member);
	uint64_t sum;

	if (__builtin_mul_overflow(time_ns, n, &sum) || sum > PRODUCT_MAX)
		snprintf(members->why, REPORT_WHY_MAX,
			 "%s is too long for %" PRIu64 " measurements",
			 names[member], n);
	return time_ns;
}

static void members_address(const struct members *members, enum member member,
			    uint8_t ret_ip[16])
{
	if (!flow_address_read(members->values[member], ret_ip))
		snprintf(members->why, REPORT_WHY_MAX, "%s is no address",
			 names[member]);
}

/* @return the conversation's: up to 16 hexadecimal digits */
static uint64_t members_id(const struct members *members)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	char text[32];
	const char *id = json_text(members->values[MEMBER_CONVERSATION], text,
				   sizeof(text));

	if (id[strspn(id, digits)] || strlen(id) > 16)
		snprintf(members->why, REPORT_WHY_MAX,
			 "%s is no number of 64 bits in hexadecimal",
			 names[MEMBER_CONVERSATION]);
	return strtoull(id, NULL, 16);
}

/* ---- Faces ----------------------------------------------------------------------------- */

/* The members of a tuple: both addresses, then both ports. */
enum { OWN_FACE, FACE_OF_XLAT, FACE_OF_ORIG, FACES };

static const enum member face_members[FACES][4] = {
	[OWN_FACE] = { MEMBER_SRC, MEMBER_DST, MEMBER_SRC_PORT, MEMBER_DST_PORT },
	[FACE_OF_XLAT] = { MEMBER_XLAT_SRC, MEMBER_XLAT_DST,
			   MEMBER_XLAT_SRC_PORT, MEMBER_XLAT_DST_PORT },
	[FACE_OF_ORIG] = { MEMBER_ORIG_SRC, MEMBER_ORIG_DST,
			   MEMBER_ORIG_SRC_PORT, MEMBER_ORIG_DST_PORT },
};

static struct flow_face take_face(const struct members *members,
				  const enum member of[4])
{
	struct flow_face face = {
		.src_port = (uint16_t)members_number(members, of[2], UINT16_MAX),
		.dst_port = (uint16_t)members_number(members, of[3], UINT16_MAX),
		.proto = (uint8_t)members_number(members, MEMBER_PROTO, UINT8_MAX),
	};

	members_address(members, of[0], face.src);
	members_address(members, of[1], face.dst);
	return face;
}

static void read_others(const struct members *members,
			struct service_report *report)
{
	for (int i = FACE_OF_XLAT; i <= FACE_OF_ORIG; i++) {
		const enum member *of = face_members[i];

		if (members->values[of[0]].at && members->values[of[1]].at)
			add_face(report, take_face(members, of));
	}
}

/* ---- Kinds of records ------------------------------------------------------------------ */

/* @container: its member; the two behind it are those of the pod */
static void read_workload(const struct members *members, enum member container,
			  char *ret_name)
{
	char texts[3][REPORT_WORKLOAD_MAX];

	for (int i = 0; i < 3; i++)
		json_text(members->values[container + (enum member)i], texts[i],
			  sizeof(texts[i]));
	name_workload(ret_name, texts[0], texts[1], texts[2]);
}

static void read_flow(const struct members *members, struct service_report *report)
{
	report->packets = members_count(members, MEMBER_PACKETS);
	report->bytes = members_count(members, MEMBER_BYTES);
	report->retransmits = members_count(members, MEMBER_RETRANSMITS);
	report->retransmitted_bytes = members_count(members, MEMBER_RESENT);
	report->late_unknown = members_count(members, MEMBER_LATE_UNKNOWN);
	report->rtt_samples = members_count(members, MEMBER_RTT_SAMPLES);
	report->rtt_ns = members_mean(members,
				      members->values[MEMBER_PATH_RTT].at ?
					      MEMBER_PATH_RTT :
					      MEMBER_RTT,
				      report->rtt_samples);
	report->responses = members_count(members, MEMBER_RESPONSES);
	report->response_ns =
		members_mean(members, MEMBER_RESPONSE, report->responses);
	report->sampling =
		(uint32_t)members_number(members, MEMBER_SAMPLING, UINT32_MAX);
	report->tcp_flags =
		(uint16_t)members_number(members, MEMBER_FLAGS, UINT16_MAX);
	report->has_combined = members->values[MEMBER_COMBINED].at;
	report->tcp_combined =
		(uint8_t)members_number(members, MEMBER_COMBINED, UINT8_MAX);
	json_text(members->values[MEMBER_SRC_PROCESS], report->processes[0],
		  REPORT_PROCESS_MAX);
	json_text(members->values[MEMBER_DST_PROCESS], report->processes[1],
		  REPORT_PROCESS_MAX);
	read_workload(members, MEMBER_SRC_CONTAINER, report->workloads[0]);
	read_workload(members, MEMBER_DST_CONTAINER, report->workloads[1]);
}

static bool has_text(struct json_value value, const char *text)
{
	char buf[32];

	return !strcmp(json_text(value, buf, sizeof(buf)), text);
}

static void read_session(const struct members *members,
			 struct service_report *report)
{
	char name[16];

	report->opened = has_text(members->values[MEMBER_OPENED], "active") ?
				 NETOBS_SESSION_ACTIVE :
			 has_text(members->values[MEMBER_OPENED], "passive") ?
				 NETOBS_SESSION_PASSIVE :
				 NETOBS_SESSION_OPENED_UNKNOWN;
	json_text(members->values[MEMBER_ENDED], name, sizeof(name));
	for (unsigned int i = 0; netobs_session_ended_name(i); i++)
		if (!strcmp(name, netobs_session_ended_name(i)))
			report->ended = (uint8_t)i;
	json_text(members->values[MEMBER_PROCESS], report->processes[0],
		  REPORT_PROCESS_MAX);
	read_workload(members, MEMBER_CONTAINER, report->workloads[0]);
}

static enum report_kind find_kind(struct json_value type)
{
	if (!type.at || has_text(type, "flow"))
		return REPORT_FLOW;
	if (has_text(type, "session"))
		return REPORT_SESSION;
	return has_text(type, "mapping") ? REPORT_MAPPING : REPORT_NONE;
}

/* Agents in several namespaces of one host have the same name, and mostly the same identity. */
static void read_origin(const struct members *members,
			struct report_origin *origin)
{
	char agent[64], name[128], id[48];

	json_text(members->values[MEMBER_AGENT], agent, sizeof(agent));
	json_text(members->values[MEMBER_HOST_NAME], name, sizeof(name));
	json_text(members->values[MEMBER_HOST_ID], id, sizeof(id));
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

static void read_report(const struct members *members,
			struct service_report *report)
{
	report->face = take_face(members, face_members[OWN_FACE]);
	read_others(members, report);
	report->conversation_id = members_id(members);
	report->icmp =
		(uint16_t)(members_number(members, MEMBER_ICMP_TYPE, UINT8_MAX)
				   << 8 |
			   members_number(members, MEMBER_ICMP_CODE, UINT8_MAX));
	report->start_ms =
		(int64_t)members_number(members, MEMBER_START_MS, TIME_MAX_MS);
	report->end_ms =
		(int64_t)members_number(members, MEMBER_END_MS, TIME_MAX_MS);
	if (report->kind == REPORT_FLOW)
		read_flow(members, report);
	else if (report->kind == REPORT_SESSION)
		read_session(members, report);
}

bool report_read(struct json_value record, struct service_report *ret_report,
		 struct report_origin *ret_origin, char ret_why[REPORT_WHY_MAX])
{
	struct members members = { .why = ret_why };

	*ret_why = '\0';
	members_read(record, &members);
	read_origin(&members, ret_origin);
	*ret_report = (struct service_report){
		.kind = find_kind(members.values[MEMBER_TYPE])
	};
	/* A socket that has no address yet. */
	if (ret_report->kind == REPORT_SESSION &&
	    (!members.values[MEMBER_SRC].at ||
	     members_is_json(members.values[MEMBER_SRC], "\"::\"")))
		ret_report->kind = REPORT_NONE;
	if (ret_report->kind == REPORT_NONE)
		return true;
	if (!members.values[MEMBER_PROTO].at ||
	    !members.values[MEMBER_SRC].at || !members.values[MEMBER_DST].at)
		snprintf(ret_why, REPORT_WHY_MAX, "it is no record of netobs");
	else
		read_report(&members, ret_report);
	return !*ret_why;
}
