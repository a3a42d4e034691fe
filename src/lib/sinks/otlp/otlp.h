/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records as OTLP has them, for the kinds of sinks that send them: requests of log records,
 * https://opentelemetry.io/docs/specs/otlp/. A request is a head and, one after the other, its entries,
 * of which the head knows the length alone.
 *
 *	ExportLogsServiceRequest.resource_logs (1)
 *		.resource (1), .scope_logs (2)
 *			.scope (1), .schema_url (3)
 *			.log_records (2): the entries
 */
#ifndef NETOBS_SINKS_OTLP_OTLP_H
#define NETOBS_SINKS_OTLP_OTLP_H

#include "record/any.h"
#include "sink/host_fields.h"
#include "sink/module.h"

enum {
	OTLP_TYPES = SINK_TYPES_ALL & ~SINK_TYPE(STATS) & ~SINK_TYPE(GROUP),
	/* Each text may grow to three times its length. */
	OTLP_POINT_MAX = 3 * PACK_NAME_MAX + 40, /* bytes of an interface */
	OTLP_FIELDS_MAX = 14 << 10,		 /* of all else */
	OTLP_ENTRY_MAX = PACK_POINTS_MAX * OTLP_POINT_MAX + OTLP_FIELDS_MAX,
	OTLP_RESOURCE_MAX = 2 * HOST_FIELDS_MAX + 1024,
	OTLP_HEAD_MAX = OTLP_RESOURCE_MAX + 256,
};

/* What all records of a sink have in common. */
struct otlp {
	uint8_t resource[OTLP_RESOURCE_MAX]; /* a message Resource */
	size_t resource_len;
};

/**
 * Read host=, agent_ip= and field.NAME=: attributes of the resource. What is wrong is refused.
 */
void otlp_read(struct otlp *otlp, struct spec *spec);

/**
 * Write a record.
 *
 * @param record  of OTLP_TYPES
 * @param to      has OTLP_ENTRY_MAX bytes
 * @return its length
 */
size_t otlp_entry(const struct netobs_record *record, uint8_t *to);

/**
 * Write what is in front of entries.
 *
 * @param entries_len  bytes of them, less than 2^31
 * @param to           has OTLP_HEAD_MAX bytes
 * @return its length
 */
size_t otlp_head(const struct otlp *otlp, size_t entries_len, uint8_t *to);

/* What the answer to a request says. */
struct otlp_answer {
	uint64_t rejected; /* records that will never be accepted */
	char message[256]; /* why, as printable ASCII; "": it says nothing */
};

/**
 * @return false: it is no answer of OTLP
 */
bool otlp_read_answer(const void *bytes, size_t len,
		      struct otlp_answer *ret_answer);

#endif
