/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/session.h>

#include "any.h"
#include "base/json.h"
#include "base/text.h"
#include "base/util.h"

#include <string.h>

static const char *const opened_names[] = {
	[NETOBS_SESSION_ACTIVE] = "active",
	[NETOBS_SESSION_PASSIVE] = "passive",
};

static const char *const ended_names[NETOBS_SESSION_ENDINGS] = {
	[NETOBS_SESSION_OPEN] = "open",
	[NETOBS_SESSION_FIN] = "fin",
	[NETOBS_SESSION_RESET] = "reset",
	[NETOBS_SESSION_ABORTED] = "aborted",
	[NETOBS_SESSION_TIMEOUT] = "timeout",
	[NETOBS_SESSION_REFUSED] = "refused",
	[NETOBS_SESSION_FAILED] = "failed",
};

static const char *const by_names[NETOBS_SESSION_BY_KINDS] = {
	[NETOBS_SESSION_BY_NONE] = "none",
	[NETOBS_SESSION_BY_HOLDING] = "holding",
	[NETOBS_SESSION_BY_CLOSING] = "closing",
	[NETOBS_SESSION_BY_OPENING] = "opening",
	[NETOBS_SESSION_BY_USING] = "using",
};

const char *netobs_session_ended_name(unsigned int ended)
{
	return ended < NETOBS_SESSION_ENDINGS ? ended_names[ended] : NULL;
}

const char *netobs_session_by_name(unsigned int by)
{
	return by < NETOBS_SESSION_BY_KINDS ? by_names[by] : NULL;
}

/* A record from elsewhere may have a value that has no name. */
static void add_name(struct json *json, const char *key, const char *name)
{
	if (!name)
		return;
	json_key(json, key);
	json_string(json, name);
}

/* @text may fill all of its array. */
static void add_text(struct json *json, const char *key, const char *text,
		     size_t size)
{
	char copy[sizeof(((struct netobs_session *)NULL)->cgroup_path) + 1];
	size_t len = strnlen(text, size);

	if (!len)
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	add_name(json, key, copy);
}

#define ADD_TEXT(json, key, member) add_text(json, key, member, sizeof(member))

static void add_address(struct json *json, const char *key, const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, ip) = '\0';
	add_name(json, key, text);
}

static void add_ms(struct json *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ns / NSEC_PER_MSEC);
}

/* A record from elsewhere may have any times: the longest duration there is, if it does not fit. */
static int64_t lasted_ns(const struct netobs_session *session)
{
	int64_t ns;

	if (__builtin_sub_overflow(session->end_ns, session->start_ns, &ns))
		return session->end_ns < session->start_ns ? INT64_MIN :
							     INT64_MAX;
	return ns;
}

static void add_connection(struct json *json, const struct netobs_session *session)
{
	add_address(json, "SrcAddr", session->local_addr);
	add_address(json, "DstAddr", session->remote_addr);
	json_key_u64(json, "SrcPort", session->local_port);
	json_key_u64(json, "DstPort", session->remote_port);
	json_key_u64(json, "Proto", session->protocol);
	if (session->record.has & NETOBS_SESSION_HAS_START) {
		add_ms(json, "TimeFlowStartMs", session->start_ns);
		add_ms(json, "DurationMs", lasted_ns(session));
	}
	add_ms(json, "TimeFlowEndMs", session->end_ns);
	if (session->opened < ARRAY_SIZE(opened_names))
		add_name(json, "Opened", opened_names[session->opened]);
	add_name(json, "Ended", netobs_session_ended_name(session->ended));
	if (session->error)
		json_key_u64(json, "Errno", session->error);
}

static void add_counters(struct json *json, const struct netobs_session *session)
{
	json_key_u64(json, "BytesAcked", session->bytes_acked);
	json_key_u64(json, "BytesReceived", session->bytes_received);
	json_key_u64(json, "BytesSent", session->bytes_sent);
	json_key_u64(json, "BytesRetransmitted", session->bytes_retransmitted);
	json_key_u64(json, "SegmentsSent", session->segments_sent);
	json_key_u64(json, "SegmentsReceived", session->segments_received);
	json_key_u64(json, "DataSegmentsSent", session->data_segments_sent);
	json_key_u64(json, "DataSegmentsReceived",
		     session->data_segments_received);
	json_key_u64(json, "Retransmits", session->retransmits);
	json_key_u64(json, "Lost", session->lost);
	json_key_u64(json, "Reordering", session->reordering);
	json_key_u64(json, "Reordered", session->reordered);
	json_key_u64(json, "Delivered", session->delivered);
	json_key_u64(json, "DeliveredCe", session->delivered_ce);
	json_key_u64(json, "Duplicates", session->duplicates);
	json_key_u64(json, "Cwnd", session->cwnd);
	json_key_u64(json, "Mss", session->mss);
}

static void add_times(struct json *json, const struct netobs_session *session)
{
	if (session->record.has & NETOBS_SESSION_HAS_RTT) {
		json_key_u64(json, "TimeFlowRttNs", session->rtt_ns);
		json_key_u64(json, "RttVariationNs", session->rtt_variation_ns);
	}
	if (session->record.has & NETOBS_SESSION_HAS_MIN_RTT)
		json_key_u64(json, "MinRttNs", session->min_rtt_ns);
	json_key_u64(json, "BusyUs", session->busy_us);
	json_key_u64(json, "WindowLimitedUs", session->window_limited_us);
	json_key_u64(json, "BufferLimitedUs", session->buffer_limited_us);
}

static void add_process(struct json *json, const struct netobs_session *session)
{
	json_key_u64(json, "NetnsInode", session->netns_inode);
	if (!(session->record.has & NETOBS_SESSION_HAS_PROCESS))
		return;
	add_name(json, "ProcessBy", netobs_session_by_name(session->process_by));
	ADD_TEXT(json, "Process", session->process);
	json_key_u64(json, "Pid", session->pid);
	json_key_u64(json, "Tid", session->tid);
	json_key_u64(json, "Uid", session->uid);
	json_key_u64(json, "CgroupId", session->cgroup_id);
	ADD_TEXT(json, "CgroupPath", session->cgroup_path);
	ADD_TEXT(json, "ContainerId", session->container_id);
	ADD_TEXT(json, "PodUid", session->pod_uid);
}

int session_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	const struct netobs_session *session = (const void *)record;
	struct json json;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_name(&json, "type", netobs_record_type_name(NETOBS_RECORD_SESSION));
	add_ms(&json, "TimeMs", record->time_ns);
	add_connection(&json, session);
	add_counters(&json, session);
	add_times(&json, session);
	add_process(&json, session);
	json_close(&json, '}');
	return json_end(&json);
}
