/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds which packets of a point no other point saw before, where other points may have seen them
 * (SIGHT_BEYOND).
 */
#ifndef NETOBS_FLOWS_FIRST_SIGHTS_H
#define NETOBS_FLOWS_FIRST_SIGHTS_H

#include "flow_table.h"

struct host;

/* @point: of SIGHT_BEYOND, and not on the way in through a tunnel's device */
struct volume first_sights_find(const struct flow *flow, const struct host *host,
				const struct point *point);

/*
 * Subtract from @seen the packets that interfaces above @point sent through it, since those interfaces
 * have seen them: outgoing packets of other namespaces, and packets that one macvlan sends to another.
 */
void first_sights_leave_out_above(const struct flow *flow,
				  const struct host *host,
				  const struct point *point, struct volume *seen);

#endif
