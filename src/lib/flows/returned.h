/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Packets that tc redirects to an ifb on their way out: the ifb returns them to the interface that they were to
 * leave by, so they pass that point twice. */
#ifndef NETOBS_FLOWS_RETURNED_H
#define NETOBS_FLOWS_RETURNED_H

#include "flow_table.h"

struct host;

/** @return the packets that ifbs of @netns have returned */
struct volume returned_sum(const struct flow *flow, const struct host *host,
			   uint16_t netns);

/** Remove from @left, the packets that left @point's namespace, the second pass of those that an ifb returned. */
void returned_leave_out(const struct flow *flow, const struct host *host,
			const struct point *point, struct volume *left);

#endif
