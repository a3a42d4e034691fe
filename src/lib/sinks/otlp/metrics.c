// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Metrics of a group's flows in an interval: sums and histograms. Records are of an interval each,
 * and so are these (delta): each is delivered once, or counted as lost, and a sink needs no memory
 * of series, which a restart would take from it.
 */
#include "otlp.h"

#include "base/times.h"
#include "sinks/pbflow/wire.h"

#include <assert.h>
#include <stddef.h>

/* Numbers in metrics.proto. */
enum {
	SCOPE_METRICS_METRICS = 2,

	METRIC_NAME = 1,
	METRIC_UNIT = 3,
	METRIC_SUM = 7,
	METRIC_EXPONENTIAL_HISTOGRAM = 10,

	/* Fields of a sum and of a histogram. */
	DATA_POINTS = 1,
	DATA_TEMPORALITY = 2,
	SUM_IS_MONOTONIC = 3,
	TEMPORALITY_DELTA = 1,

	/* Fields of a point of either. */
	POINT_START_TIME = 2,
	POINT_TIME = 3,

	NUMBER_AS_INT = 6,
	NUMBER_ATTRIBUTES = 7,

	HISTOGRAM_ATTRIBUTES = 1,
	HISTOGRAM_COUNT = 4,
	HISTOGRAM_SUM = 5,
	HISTOGRAM_ZERO_COUNT = 7,
	HISTOGRAM_POSITIVE = 8,
	HISTOGRAM_ZERO_THRESHOLD = 14,

	BUCKETS_OFFSET = 1,
	BUCKETS_COUNTS = 2,
};

enum {
	METRICS = 14,
	/* Texts of a record, of which each byte may become three, */
	TEXTS_MAX = offsetof(struct netobs_group_record, drop_packets) -
		    offsetof(struct netobs_group_record, interface),
	/* those that are of ASCII, */
	ASCII_MAX = offsetof(struct netobs_group_record, rtt_sum_ns) -
		    offsetof(struct netobs_group_record, container_name),
	/* k8s.container.name, of the same text as another one, */
	AGAIN_MAX = sizeof(((struct netobs_group_record *)NULL)->container_name),
	/* and names, numbers and addresses. */
	OTHERS_MAX = 1536,
	ATTRIBUTES_MAX = 3 * TEXTS_MAX + ASCII_MAX + AGAIN_MAX + OTHERS_MAX,
	HISTOGRAMS = 2,
	SUM_MAX = ATTRIBUTES_MAX + 128,
	HISTOGRAM_MAX =
		ATTRIBUTES_MAX + 448, /* a number of 10 bytes for each class */
};

_Static_assert((METRICS - HISTOGRAMS) * SUM_MAX + HISTOGRAMS * HISTOGRAM_MAX <=
		       (int)OTLP_ENTRY_MAX,
	       "metrics of a record fit");

/* The attributes of each point, which name the group. */
struct attributes {
	uint8_t bytes[ATTRIBUTES_MAX];
	size_t len;
};

struct metric {
	const char *name, *unit;
	bool is_known;
	uint64_t value;			  /* of a sum, or */
	const struct netobs_times *times; /* a histogram */
};

#define SUM(name, unit, is_known, value)          \
	{                                         \
		name, unit, is_known, value, NULL \
	}
#define HISTOGRAM(name, is_known, times)       \
	{                                      \
		name, "us", is_known, 0, times \
	}

/* A mean is cut to whole nanoseconds, and its product is less than the sum. */
static uint64_t rtt_sum_of(const struct netobs_group_record *group)
{
	return group->rtt_sum_ns ?: group->rtt_ns * group->rtt_samples;
}

/* Units are those of https://ucum.org. */
static void list_metrics(const struct netobs_group_record *group,
			 struct metric metrics[METRICS])
{
	const uint32_t has = group->record.has;
	const bool has_sent = has & NETOBS_GROUP_HAS_SENT;
	const bool has_rtt = has & NETOBS_GROUP_HAS_RTT;
	const struct metric list[METRICS] = {
		SUM("netobs.group.flows", "{flow}", true, group->flows),
		SUM("netobs.group.packets", "{packet}", true, group->packets),
		SUM("netobs.group.bytes", "By", true, group->bytes),
		SUM("netobs.group.sent.packets", "{packet}", has_sent,
		    group->sent_packets),
		SUM("netobs.group.sent.bytes", "By", has_sent, group->sent_bytes),
		SUM("netobs.group.rtt.samples", "{sample}", has_rtt,
		    group->rtt_samples),
		/* The sum of all samples: divided by their number, it is their mean. */
		SUM("netobs.group.rtt.time", "ns", has_rtt, rtt_sum_of(group)),
		SUM("netobs.group.retransmits", "{segment}", group->retransmits,
		    group->retransmits),
		SUM("netobs.group.drops.packets", "{packet}",
		    group->drop_packets, group->drop_packets),
		SUM("netobs.group.drops.bytes", "By", group->drop_bytes,
		    group->drop_bytes),
		SUM("netobs.group.connections.ended", "{connection}",
		    group->connections, group->connections),
		SUM("netobs.group.connections.failed", "{connection}",
		    group->connections, group->connections_failed),
		HISTOGRAM("netobs.group.rtt.duration",
			  has & NETOBS_GROUP_HAS_RTT_TIMES, &group->rtt_times),
		HISTOGRAM("netobs.group.app_latency.duration",
			  has & NETOBS_GROUP_HAS_APP_LATENCY_TIMES,
			  &group->app_latency_times),
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

/* ---- Sums ------------------------------------------------------------------------------ */

static uint8_t *put_interval(uint8_t *to, const struct netobs_group_record *group)
{
	to = put_fixed64(to, POINT_START_TIME, (uint64_t)group->start_ns);
	return put_fixed64(to, POINT_TIME, (uint64_t)group->record.time_ns);
}

static uint8_t *put_attributes(uint8_t *to, const struct attributes *attributes)
{
	memcpy(to, attributes->bytes, attributes->len);
	return to + attributes->len;
}

static uint8_t *put_sum(uint8_t *to, const struct netobs_group_record *group,
			uint64_t value, const struct attributes *attributes)
{
	uint8_t *point = to + WIRE_HEAD_MAX, *end = put_interval(point, group);

	end = put_fixed64(end, NUMBER_AS_INT, value);
	end = put_attributes(end, attributes);
	to = put_moved(to, DATA_POINTS, point, (size_t)(end - point));
	to = put_number(to, DATA_TEMPORALITY, TEMPORALITY_DELTA);
	return put_number(to, SUM_IS_MONOTONIC, true);
}

/* ---- Histograms ------------------------------------------------------------------------ */

/*
 * At scale 0, the bucket with index i has what is above 2^i and up to 2^(i + 1). Class i of times has
 * what is above 2^(3 + i) us and up to 2^(4 + i) us, so it is the bucket with index 3 + i; class 0 is
 * all that is up to 16 us, which is the bucket around zero.
 */
enum { FIRST_INDEX = 3 };

_Static_assert((int)TIMES_SHORTEST_US == 1 << (FIRST_INDEX + 1),
	       "the first class ends where a bucket ends");

static uint8_t *put_double(uint8_t *to, uint32_t number, double value)
{
	uint64_t bits;

	_Static_assert(sizeof(bits) == sizeof(value), "IEEE 754");
	memcpy(&bits, &value, sizeof(bits));
	return put_fixed64(to, number, bits);
}

/* sint32: 0, -1, 1, -2 ... are 0, 1, 2, 3 ... */
static uint8_t *put_signed(uint8_t *to, uint32_t number, int32_t value)
{
	return put_number(to, number,
			  (uint32_t)value << 1 ^ (uint32_t)(value >> 31));
}

/* From the first class that has any, up to the last. */
static uint8_t *put_buckets(uint8_t *to, const struct netobs_times *times)
{
	uint8_t *buckets = to + WIRE_HEAD_MAX, *counts, *at, *end;
	unsigned int first = 1, last = NETOBS_TIME_CLASSES - 1;

	while (first <= last && !times->classes[first])
		first++;
	while (last > first && !times->classes[last])
		last--;
	if (first > last)
		return to;
	end = put_signed(buckets, BUCKETS_OFFSET, FIRST_INDEX + (int32_t)first);
	counts = at = end + WIRE_HEAD_MAX;
	for (unsigned int i = first; i <= last; i++)
		at = put_varint(at, times->classes[i]);
	end = put_moved(end, BUCKETS_COUNTS, counts, (size_t)(at - counts));
	return put_moved(to, HISTOGRAM_POSITIVE, buckets,
			 (size_t)(end - buckets));
}

static uint8_t *put_histogram(uint8_t *to,
			      const struct netobs_group_record *group,
			      const struct netobs_times *times,
			      const struct attributes *attributes)
{
	uint8_t *point = to + WIRE_HEAD_MAX;
	uint8_t *end = put_interval(put_attributes(point, attributes), group);

	end = put_fixed64(end, HISTOGRAM_COUNT, times->n);
	end = put_double(end, HISTOGRAM_SUM, (double)times->sum_ns / 1000);
	end = put_fixed64(end, HISTOGRAM_ZERO_COUNT, times->classes[0]);
	end = put_buckets(end, times);
	end = put_double(end, HISTOGRAM_ZERO_THRESHOLD, TIMES_SHORTEST_US);
	to = put_moved(to, DATA_POINTS, point, (size_t)(end - point));
	return put_number(to, DATA_TEMPORALITY, TEMPORALITY_DELTA);
}

/* ---- Metrics ---------------------------------------------------------------------------- */

static uint8_t *put_metric(uint8_t *to, const struct netobs_group_record *group,
			   const struct metric *metric,
			   const struct attributes *attributes)
{
	uint8_t *message = to + WIRE_HEAD_MAX, *end = message, *data, *data_end;

	end = put_bytes(end, METRIC_NAME, metric->name, strlen(metric->name));
	end = put_bytes(end, METRIC_UNIT, metric->unit, strlen(metric->unit));
	data = end + WIRE_HEAD_MAX;
	data_end = metric->times ?
			   put_histogram(data, group, metric->times, attributes) :
			   put_sum(data, group, metric->value, attributes);
	end = put_moved(end,
			metric->times ? METRIC_EXPONENTIAL_HISTOGRAM : METRIC_SUM,
			data, (size_t)(data_end - data));
	return put_moved(to, SCOPE_METRICS_METRICS, message,
			 (size_t)(end - message));
}

/* Names of containers, pods and units are of ASCII: a text with other bytes is none. */
static void drop_if_other(char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++)
		if (text[i] & 0x80)
			*text = '\0';
}

#define drop_other(array) drop_if_other(array, sizeof(array))

static void drop_others(struct netobs_group_record *group)
{
	drop_other(group->container_name);
	drop_other(group->pod_name);
	drop_other(group->pod_namespace);
	drop_other(group->unit);
	drop_other(group->slice);
	drop_other(group->machine);
}

/* Counts and times are no attributes: a series keeps its own. */
static void fill_attributes(struct attributes *attributes, uint32_t number,
			    const struct netobs_group_record *group)
{
	static const char *const without[] = {
		"type",
		"TimeMs",
		"TimeFlowStartMs",
		"TimeFlowEndMs",
		"Flows",
		"Packets",
		"Bytes",
		"SentPackets",
		"SentBytes",
		"RttSamples",
		"TimeFlowRttNs",
		"Retransmits",
		"PktDropPackets",
		"PktDropBytes",
		"Connections",
		"ConnectionsFailed",
		"RttHistogram",
		"RttHistogramSumNs",
		"AppLatencyHistogram",
		"AppLatencyHistogramSumNs",
		NULL,
	};
	struct netobs_group_record named = *group;
	uint8_t *end;

	drop_others(&named);
	end = put_record_attributes(attributes->bytes, number, &named.record,
				    without);

	attributes->len = (size_t)(end - attributes->bytes);
	assert(attributes->len <= sizeof(attributes->bytes));
}

uint8_t *put_metrics(uint8_t *to, const struct netobs_group_record *group)
{
	const uint32_t histograms = NETOBS_GROUP_HAS_RTT_TIMES |
				    NETOBS_GROUP_HAS_APP_LATENCY_TIMES;
	struct attributes of_sums, of_histograms;
	struct metric metrics[METRICS];

	of_histograms.len = 0;
	fill_attributes(&of_sums, NUMBER_ATTRIBUTES, group);
	if (group->record.has & histograms)
		fill_attributes(&of_histograms, HISTOGRAM_ATTRIBUTES, group);
	list_metrics(group, metrics);
	for (size_t i = 0; i < METRICS; i++)
		if (metrics[i].is_known)
			to = put_metric(to, group, &metrics[i],
					metrics[i].times ? &of_histograms :
							   &of_sums);
	return to;
}
