/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Flow records as flow.proto has them, which is made of flow.proto.in and the catalogue:
 * NetObserv's fields with its meaning, and the rest of a record in fields of our own.
 * flowlogs-pipeline, which reads them, fails without some fields: data_link, network,
 * transport, time_flow_rtt and one interface are always there.
 */
#ifndef NETOBS_SINKS_PBFLOW_PBFLOW_H
#define NETOBS_SINKS_PBFLOW_PBFLOW_H

#include "sink/module.h"
#include "record/any.h"

#include <netobs/flow.h>

#include <stdbool.h>

enum {
	PBFLOW_POINT_MAX = 3 * PACK_NAME_MAX + 32, /* bytes of an interface */
	PBFLOW_FIELDS_MAX = 1024, /* bytes of all other fields */
	PBFLOW_PROCESS_MAX = 3 * sizeof(struct netobs_process),
	PBFLOW_RECORD_MAX = PBFLOW_FIELDS_MAX + 2 * PBFLOW_PROCESS_MAX +
			    PACK_POINTS_MAX * PBFLOW_POINT_MAX,
	PBFLOW_ENTRY_MAX = PBFLOW_RECORD_MAX + 4, /* a record among Records */
};

struct pbflow_options {
	uint8_t agent_ip[16]; /* as in struct netobs_flow; all 0: unknown; from agent_read_address() */
};

/**
 * Write a Record.
 *
 * @param buf  has PBFLOW_RECORD_MAX bytes
 * @return its length
 */
size_t pbflow_record(const struct netobs_flow *flow,
		     const struct pbflow_options *options, uint8_t *buf);

/*
 * Write a flow as one entry of Records: several entries, one after the other, are a message.
 * @buf has PBFLOW_ENTRY_MAX bytes. @return its length
 */
size_t pbflow_entry(const struct netobs_flow *flow,
		    const struct pbflow_options *options, uint8_t *buf);

/*
 * Records other than flows as netobs.proto has them, which is made of netobs.proto.in and the
 * catalogue. NetObserv's schema has no message for them.
 */

/* The types of records that are Records of netobs.proto. */
enum {
	PBNETOBS_TYPES = 0
#define RECORD(TYPE, kind, name, number, ...) \
	| ((number) ? SINK_TYPE(TYPE) : 0U)
#include "catalogue/records.def"
	,
	/* Bytes; each text may grow to three times its length. */
	PBNETOBS_STEP_MAX = 192,
	PBNETOBS_RECORD_MAX = 4096 + NETOBS_JOURNEY_STEPS_MAX * PBNETOBS_STEP_MAX,
	PBNETOBS_ENTRY_MAX = PBNETOBS_RECORD_MAX + 4, /* a record among Records */
};

_Static_assert((int)PBNETOBS_ENTRY_MAX <= (int)PBFLOW_ENTRY_MAX,
	       "room for a flow is room for any");

/** @return whether @record is one of them, and not a flow */
static inline bool pbnetobs_has(const struct netobs_record *record)
{
	return PBNETOBS_TYPES & 1U << record->type;
}

/**
 * Write a Record.
 *
 * @param record  for which pbnetobs_has()
 * @param buf     has PBNETOBS_RECORD_MAX bytes
 * @return its length
 */
size_t pbnetobs_record(const struct netobs_record *record,
		       const struct pbflow_options *options, uint8_t *buf);

/*
 * Write a record as one entry of Records: several entries, one after the other, are a message.
 * @buf has PBNETOBS_ENTRY_MAX bytes. @return its length
 */
size_t pbnetobs_entry(const struct netobs_record *record,
		      const struct pbflow_options *options, uint8_t *buf);

#endif
