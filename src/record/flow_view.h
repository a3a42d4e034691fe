/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of callers, whose structs may be older and smaller than this library's,
 * or newer and larger. What a struct lacks is zero.
 */
#ifndef NETOBS_RECORD_FLOW_VIEW_H
#define NETOBS_RECORD_FLOW_VIEW_H

#include <netobs/flow.h>

/*
 * @flow as this library's struct: itself, or @copy where its own is smaller. NULL:
 * its sizes cannot be.
 */
const struct netobs_flow *flow_view(const struct netobs_flow *flow,
				    struct netobs_flow *copy);

/* Point @i of what flow_view() returned, which has as many. */
struct netobs_point flow_view_point(const struct netobs_flow *flow, uint32_t i);

#endif
