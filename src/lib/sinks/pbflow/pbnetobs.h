/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records other than flows as netobs.proto has them, which is made of netobs.proto.in and the
 * catalogue. NetObserv's schema has no message for them.
 */
#ifndef NETOBS_SINKS_PBFLOW_PBNETOBS_H
#define NETOBS_SINKS_PBFLOW_PBNETOBS_H

#include "pbflow.h"

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
