/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* From a flow to the public record. */
#ifndef NETOBS_FLOWS_RECORD_H
#define NETOBS_FLOWS_RECORD_H

#include "base/clock.h"
#include "flow_table.h"

#include <netobs/flow.h>

struct host;

/* Room for a record, reused for each one; freed by record_done(). */
struct record {
	struct netobs_flow flow;
	struct netobs_point *points;
	uint32_t capacity;
	uint32_t sampling; /* interval for the next record; 0: it names none */
	enum netobs_sampling sampling_mode;
};

/* Fill record->flow. -ENOMEM: more points than there is memory for. */
int record_fill(struct record *record, const struct flow *flow,
		const struct volume *delta, enum netobs_end_reason reason,
		const struct host *host, const struct clock *clock);

void record_done(struct record *record);

#endif
