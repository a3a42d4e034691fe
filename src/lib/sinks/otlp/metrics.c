// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What the flows of a group had in an interval, as sums. Records are of an interval each, and so are the sums
 * (delta): each is delivered once, or counted as lost, and a sink needs no memory of series, which a
 * restart would take from it.
 */
#include "entries.h"

#include "attributes.h"
#include "sinks/pbflow/wire.h"

/* Numbers in metrics.proto. */
enum {
	SCOPE_METRICS_METRICS = 2,

	METRIC_NAME = 1,
	METRIC_UNIT = 3,
	METRIC_SUM = 7,

	SUM_DATA_POINTS = 1,
	SUM_TEMPORALITY = 2,
	SUM_IS_MONOTONIC = 3,
	TEMPORALITY_DELTA = 1,

	POINT_START_TIME = 2,
	POINT_TIME = 3,
	POINT_AS_INT = 6,
	POINT_ATTRIBUTES = 7,
};

enum { ATTRIBUTES_MAX = 4096, METRIC_MAX = ATTRIBUTES_MAX + 256 };

struct metric {
	const char *name, *unit;
	uint64_t value;
	bool is_known;
};

enum { METRICS = 8 };

_Static_assert((int)METRICS *METRIC_MAX <= (int)OTLP_ENTRY_MAX,
	       "metrics of a record fit");

/* Units are those of https://ucum.org. */
static void list_metrics(const struct netobs_group_record *group,
			 struct metric metrics[METRICS])
{
	const uint32_t has = group->record.has;
	const bool has_sent = has & NETOBS_GROUP_HAS_SENT;
	const bool has_rtt = has & NETOBS_GROUP_HAS_RTT;
	const struct metric list[METRICS] = {
		{ "netobs.group.flows", "{flow}", group->flows, true },
		{ "netobs.group.packets", "{packet}", group->packets, true },
		{ "netobs.group.bytes", "By", group->bytes, true },
		{ "netobs.group.sent.packets", "{packet}", group->sent_packets,
		  has_sent },
		{ "netobs.group.sent.bytes", "By", group->sent_bytes, has_sent },
		{ "netobs.group.rtt.samples", "{sample}", group->rtt_samples,
		  has_rtt },
		/* Of all samples: their mean is this by their number. */
		{ "netobs.group.rtt.time", "ns",
		  group->rtt_ns * group->rtt_samples, has_rtt },
		{ "netobs.group.retransmits", "{segment}", group->retransmits,
		  group->retransmits },
	};

	memcpy(metrics, list, sizeof(list));
}

uint32_t count_metrics(const struct netobs_group_record *group)
{
	struct metric metrics[METRICS];
	uint32_t n = 0;

	list_metrics(group, metrics);
	for (size_t i = 0; i < METRICS; i++)
		n += metrics[i].is_known;
	return n;
}

static uint8_t *put_sum(uint8_t *to, const struct netobs_group_record *group,
			uint64_t value, const uint8_t *attributes, size_t len)
{
	uint8_t *point = to + WIRE_HEAD_MAX, *end = point;

	end = put_fixed64(end, POINT_START_TIME, (uint64_t)group->start_ns);
	end = put_fixed64(end, POINT_TIME, (uint64_t)group->record.time_ns);
	end = put_fixed64(end, POINT_AS_INT, value);
	memcpy(end, attributes, len);
	to = put_moved(to, SUM_DATA_POINTS, point, (size_t)(end + len - point));
	to = put_number(to, SUM_TEMPORALITY, TEMPORALITY_DELTA);
	return put_number(to, SUM_IS_MONOTONIC, true);
}

static uint8_t *put_metric(uint8_t *to, const struct netobs_group_record *group,
			   const struct metric *metric,
			   const uint8_t *attributes, size_t len)
{
	uint8_t *message = to + WIRE_HEAD_MAX, *end = message, *sum;

	end = put_bytes(end, METRIC_NAME, metric->name, strlen(metric->name));
	end = put_bytes(end, METRIC_UNIT, metric->unit, strlen(metric->unit));
	sum = end + WIRE_HEAD_MAX;
	end = put_moved(
		end, METRIC_SUM, sum,
		(size_t)(put_sum(sum, group, metric->value, attributes, len) -
			 sum));
	return put_moved(to, SCOPE_METRICS_METRICS, message,
			 (size_t)(end - message));
}

/* Counts and times are no attributes: a series keeps its own. */
static size_t put_key_attributes(uint8_t *to,
				 const struct netobs_group_record *group)
{
	static const char *const without[] = {
		"type",	     "TimeMs",	   "TimeFlowStartMs", "TimeFlowEndMs",
		"Flows",     "Packets",	   "Bytes",	      "SentPackets",
		"SentBytes", "RttSamples", "TimeFlowRttNs",   "Retransmits",
		NULL,
	};

	return (size_t)(put_record_attributes(to, POINT_ATTRIBUTES,
					      &group->record, without) -
			to);
}

uint8_t *put_metrics(uint8_t *to, const struct netobs_group_record *group)
{
	uint8_t attributes[ATTRIBUTES_MAX];
	size_t len = put_key_attributes(attributes, group);
	struct metric metrics[METRICS];

	list_metrics(group, metrics);
	for (size_t i = 0; i < METRICS; i++)
		if (metrics[i].is_known)
			to = put_metric(to, group, &metrics[i], attributes, len);
	return to;
}
