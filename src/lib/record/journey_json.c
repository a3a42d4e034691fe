// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_json.h"

#include "any.h"
#include "base/json.h"
#include "base/text.h"
#include "base/util.h"
#include "catalogue/records.h"

/* ---- Parts --------------------------------------------------------------------------------- */

static const struct {
	const char *name, *key;
} parts[NETOBS_JOURNEY_PARTS] = {
	[NETOBS_JOURNEY_WRITE] = { "write", "WriteNs" },
	[NETOBS_JOURNEY_TCP] = { "tcp", "TcpNs" },
	[NETOBS_JOURNEY_RECOVERY] = { "recovery", "RecoveryNs" },
	[NETOBS_JOURNEY_QDISC] = { "qdisc", "QdiscNs" },
	[NETOBS_JOURNEY_DEVICE] = { "device", "DeviceNs" },
	[NETOBS_JOURNEY_NETWORK] = { "network", "NetworkNs" },
	[NETOBS_JOURNEY_FORWARD] = { "forward", "ForwardNs" },
	[NETOBS_JOURNEY_STACK] = { "stack", "StackNs" },
	[NETOBS_JOURNEY_GAP] = { "gap", "GapNs" },
	[NETOBS_JOURNEY_READER] = { "reader", "ReaderNs" },
};

const char *netobs_journey_part_name(unsigned int part)
{
	return part < NETOBS_JOURNEY_PARTS ? parts[part].name : NULL;
}

static void add_parts(struct json *json, const struct netobs_journey *journey)
{
	const uint32_t unknown = journey->unknown_parts;

	for (unsigned int part = 0; part < NETOBS_JOURNEY_PARTS; part++)
		if (!(unknown & 1U << part))
			json_key_u64(json, parts[part].key,
				     journey->part_ns[part]);
	if (journey->unknown_ns)
		json_key_u64(json, "UnknownNs", journey->unknown_ns);
	if (!unknown)
		return;
	json_key_open(json, "UnknownParts", '[');
	for (unsigned int part = 0; part < NETOBS_JOURNEY_PARTS; part++)
		if (unknown & 1U << part)
			json_string(json, parts[part].name);
	json_close(json, ']');
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void add_address(struct json *json, const char *key, const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, ip) = '\0';
	json_key_string(json, key, text);
}

/* The text may fill all of its array. */
static void add_array(struct json *json, const char *key, const char text[16])
{
	char copy[16 + 1] = { 0 };

	memcpy(copy, text, sizeof(copy) - 1);
	if (*copy)
		json_key_string(json, key, copy);
}

static void add_ends(struct json *json, const struct netobs_journey *journey)
{
	const uint32_t n =
		(uint32_t)min_u64(journey->n_steps, NETOBS_JOURNEY_STEPS_MAX);

	add_address(json, "SrcAddr", journey->src);
	add_address(json, "DstAddr", journey->dst);
	json_key_u64(json, "SrcPort", journey->src_port);
	json_key_u64(json, "DstPort", journey->dst_port);
	if (n && journey->record.has & NETOBS_JOURNEY_HAS_SEND) {
		json_key_u64(json, "SrcPid", journey->steps[0].pid);
		add_array(json, "SrcCommand", journey->steps[0].command);
	}
	if (n && journey->record.has & NETOBS_JOURNEY_HAS_READ) {
		json_key_u64(json, "DstPid", journey->steps[n - 1].pid);
		add_array(json, "DstCommand", journey->steps[n - 1].command);
	}
}

/* ---- Steps --------------------------------------------------------------------------------- */

static void add_name(struct json *json, const char *key, const char *name)
{
	if (name)
		json_key_string(json, key, name);
}

static void add_step(struct json *json, const struct netobs_journey_step *step,
		     int64_t start_ns)
{
	json_open(json, '{');
	add_name(json, "Point", netobs_trace_point_name(step->point));
	add_name(json, "Layer", netobs_trace_layer_name(step->layer));
	json_key_u64(json, "AfterNs",
		     (uint64_t)step->time_ns - (uint64_t)start_ns);
	if (step->attempt)
		json_key_u64(json, "Attempt", step->attempt);
	json_key_u64(json, "Cpu", step->cpu);
	json_key_u64(json, "Pid", step->pid);
	add_array(json, "Command", step->command);
	add_array(json, "Interface", step->interface);
	if (step->ifindex)
		json_key_u64(json, "IfIndex", step->ifindex);
	if (step->netns_inode)
		json_key_u64(json, "NetnsInode", step->netns_inode);
	json_close(json, '}');
}

static void add_steps(struct json *json, const struct netobs_journey *journey)
{
	json_key_bool(json, "StepsCut",
		      journey->record.has & NETOBS_JOURNEY_HAS_CUT);
	json_key_open(json, "Steps", '[');
	for (uint32_t i = 0;
	     i < journey->n_steps && i < NETOBS_JOURNEY_STEPS_MAX; i++)
		add_step(json, &journey->steps[i], journey->record.time_ns);
	json_close(json, ']');
}

/* ---- The end ------------------------------------------------------------------------------- */

static void add_drop(struct json *json, const struct netobs_journey *journey)
{
	char cause[sizeof(journey->drop_cause) + 1] = { 0 };

	if (journey->record.has & NETOBS_JOURNEY_HAS_DROP)
		json_key_bool(json, "Dropped", true);
	memcpy(cause, journey->drop_cause, sizeof(journey->drop_cause));
	if (*cause)
		json_key_string(json, "DropCause", cause);
}

/* ---- All of it ----------------------------------------------------------------------------- */

int journey_json(const struct netobs_journey *journey, char *buf, size_t size)
{
	const int64_t start_ns = journey->record.time_ns;
	struct json json;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	json_key_string(&json, "type", "journey");
	json_key_i64(&json, "TimeMs", record_ms(start_ns));
	json_key_i64(&json, "TimeNs", start_ns);
	json_key_u64(&json, "Connection", journey->connection);
	json_key_u64(&json, "Direction", journey->direction);
	json_key_i64(&json, "Offset", journey->offset);
	json_key_u64(&json, "Bytes", journey->length);
	json_key_u64(&json, "Seq", journey->seq);
	if (journey->protocol)
		json_key_u64(&json, "Proto", journey->protocol);
	add_ends(&json, journey);
	json_key_u64(&json, "TotalNs",
		     (uint64_t)journey->end_ns - (uint64_t)start_ns);
	if (journey->record.has & NETOBS_JOURNEY_HAS_ACKED)
		json_key_i64(&json, "AckedTimeNs", journey->acked_ns);
	json_key_u64(&json, "Attempts", journey->n_attempts);
	json_key_u64(&json, "Drops", journey->n_drops);
	add_drop(&json, journey);
	add_parts(&json, journey);
	add_steps(&json, journey);
	json_close(&json, '}');
	return json_end(&json);
}
