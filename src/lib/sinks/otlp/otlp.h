/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records as OTLP has them, for the kinds of sinks that send them: requests of log records, or
 * of metrics, https://opentelemetry.io/docs/specs/otlp/. A request is a head and, one after the other, its
 * entries, of which the head knows the length alone. Both have the same numbers:
 *
 *	ExportLogsServiceRequest.resource_logs (1), ExportMetricsServiceRequest.resource_metrics (1)
 *		.resource (1), .scope_logs, .scope_metrics (2)
 *			.scope (1), .schema_url (3)
 *			.log_records, .metrics (2): the entries
 */
#ifndef NETOBS_SINKS_OTLP_OTLP_H
#define NETOBS_SINKS_OTLP_OTLP_H

#include "record/any.h"
#include "sink/host_fields.h"
#include "sink/module.h"

enum {
	OTLP_TYPES = SINK_TYPES_ALL & ~SINK_TYPE(STATS),
	OTLP_METRICS = SINK_TYPE(GROUP), /* records sent as metrics */
	/* Each text may grow to three times its length. */
	OTLP_POINT_MAX = 3 * PACK_NAME_MAX + 40, /* bytes of an interface */
	OTLP_FIELDS_MAX = 17 << 10,		 /* bytes of all other fields */
	OTLP_ENTRY_MAX = PACK_POINTS_MAX * OTLP_POINT_MAX + OTLP_FIELDS_MAX,
	OTLP_RESOURCE_MAX = 2 * HOST_FIELDS_MAX + 1024,
	OTLP_HEAD_MAX = OTLP_RESOURCE_MAX + 256,
};

/* The part that all records of a sink share. */
struct otlp {
	uint8_t resource[OTLP_RESOURCE_MAX]; /* a message Resource */
	size_t resource_len;
};

/**
 * Read host=, agent_ip= and field.NAME=: attributes of the resource. What is wrong is refused.
 *
 * @param types  of the sink: OTLP_METRICS, or others
 */
void otlp_read(struct otlp *otlp, struct spec *spec, uint32_t types);

/**
 * Write a record: a log record, or metrics.
 *
 * @param record  of OTLP_TYPES
 * @param to      has OTLP_ENTRY_MAX bytes
 * @return its length
 */
size_t otlp_entry(const struct netobs_record *record, uint8_t *to);

/**
 * @return how many log records or data points a record is; answers count these
 */
uint32_t otlp_items(const struct netobs_record *record);

/**
 * Write what is in front of entries.
 *
 * @param entries_len  bytes of them, less than 2^31
 * @param to           has OTLP_HEAD_MAX bytes
 * @return its length
 */
size_t otlp_head(const struct otlp *otlp, size_t entries_len, uint8_t *to);

/* The answer to a request. */
struct otlp_answer {
	uint64_t rejected; /* items that will never be accepted */
	char message[256]; /* why, as printable ASCII; "": it says nothing */
};

/**
 * @return false: it is no answer of OTLP
 */
bool otlp_read_answer(const void *bytes, size_t len,
		      struct otlp_answer *ret_answer);

/* The entries of requests, as fields of the message around them. */

/* Put the metrics of a group: one for each count that is known, with a data point. */
uint8_t *put_metrics(uint8_t *to, const struct netobs_group_record *group);

/** @return how many put_metrics() writes */
uint32_t count_metrics(const struct netobs_group_record *group);

#endif
