/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include <netobs/session.h>

#include "base/hash.h"
#include "base/util.h"

#define TIME_MAX_MS ((uint64_t)(INT64_MAX / NSEC_PER_MSEC)) /* year 2262 */

/* ---- Faces ----------------------------------------------------------------------------- */

/* @src: the member with the source address; the others likewise */
static struct flow_face take_face(const struct members *members,
				  enum member src, enum member dst,
				  enum member src_port, enum member dst_port)
{
	struct flow_face face = {
		.src_port =
			(uint16_t)members_number(members, src_port, UINT16_MAX),
		.dst_port =
			(uint16_t)members_number(members, dst_port, UINT16_MAX),
		.proto = (uint8_t)members_number(members, MEMBER_PROTO, UINT8_MAX),
	};

	members_address(members, src, face.src);
	members_address(members, dst, face.dst);
	return face;
}

static void read_others(const struct members *members,
			struct service_report *report)
{
	struct flow_face face;

	if (members->values[MEMBER_XLAT_SRC].at &&
	    members->values[MEMBER_XLAT_DST].at) {
		face = take_face(members, MEMBER_XLAT_SRC, MEMBER_XLAT_DST,
				 MEMBER_XLAT_SRC_PORT, MEMBER_XLAT_DST_PORT);
		report_add_face(report, &face);
	}
	if (members->values[MEMBER_ORIG_SRC].at &&
	    members->values[MEMBER_ORIG_DST].at) {
		face = take_face(members, MEMBER_ORIG_SRC, MEMBER_ORIG_DST,
				 MEMBER_ORIG_SRC_PORT, MEMBER_ORIG_DST_PORT);
		report_add_face(report, &face);
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
	report_name_workload(ret_name, texts[0], texts[1], texts[2]);
}

static uint64_t hash_point(const char *text, size_t len, uint64_t direction)
{
	uint64_t hash = direction + 1;

	for (size_t i = 0; i < len; i++)
		hash = hash_finish(hash ^ (uint8_t)text[i]);
	return hash;
}

static void read_points(const struct members *members,
			struct service_report *report)
{
	struct json_item interface = { 0 }, direction = { 0 };

	while (json_next(members->values[MEMBER_INTERFACES], &interface)) {
		uint64_t way = 0;

		if (json_next(members->values[MEMBER_DIRECTIONS], &direction))
			way = members_check_number(members, MEMBER_DIRECTIONS,
						   direction.value, UINT8_MAX);
		if (!report->n_points++)
			report->point = hash_point(interface.value.at,
						   json_length(interface.value),
						   way);
	}
}

static void read_flow(const struct members *members, struct service_report *report)
{
	report->packets = members_count(members, MEMBER_PACKETS);
	report->bytes = members_count(members, MEMBER_BYTES);
	report->retransmits = members_count(members, MEMBER_RETRANSMITS);
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
	read_points(members, report);
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
	report->face = take_face(members, MEMBER_SRC, MEMBER_DST,
				 MEMBER_SRC_PORT, MEMBER_DST_PORT);
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
