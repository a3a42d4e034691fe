/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Where a point sees packets that other points may have seen before (SIGHT_BEYOND): the part of them that none
 * of these saw.
 */
#ifndef NETOBS_FLOWS_FIRST_SIGHTS_H
#define NETOBS_FLOWS_FIRST_SIGHTS_H

#include "flow_table.h"

struct host;

/* @point: of SIGHT_BEYOND, and not on the way in through a tunnel's device */
struct volume first_sights_find(const struct flow *flow, const struct host *host,
				const struct point *point);

/*
 * Leave out of @seen what interfaces above @point sent through it, which they saw: on the way out those of other
 * namespaces, on the way in macvlans that send to one another.
 */
void first_sights_leave_out_above(const struct flow *flow,
				  const struct host *host,
				  const struct point *point, struct volume *seen);

#endif
