/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What tc redirects to an ifb on its way out goes back to where that was, and passes that point twice. */
#ifndef NETOBS_FLOWS_RETURNED_H
#define NETOBS_FLOWS_RETURNED_H

#include "flow_table.h"

struct host;

/** @return what passed an ifb of @netns, from which it went back to where tc had redirected it */
struct volume returned_sum(const struct flow *flow, const struct host *host,
			   uint16_t netns);

/** Of @left, what left @point's namespace, count once what came back there from an ifb. */
void returned_leave_out(const struct flow *flow, const struct host *host,
			const struct point *point, struct volume *left);

#endif
