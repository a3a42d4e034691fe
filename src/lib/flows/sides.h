/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Sums up the packets that the points of one namespace and direction saw: interfaces that are
 * stacked on one another saw the same packets, other interfaces share them. See observe.h.
 */
#ifndef NETOBS_FLOWS_SIDES_H
#define NETOBS_FLOWS_SIDES_H

#include "flow_table.h"

struct host;

enum { ANY_SIGHT = UINT8_MAX };

/* The points of one namespace and direction, which are looked at together. */
struct side {
	const struct flow *flow;
	const struct host *host;
	const struct point *points;
	uint32_t n_points;
	uint8_t with; /* points of any of these sights, 1 << enum sight; or ANY_SIGHT */
	uint8_t without; /* and of none of these */
	const struct point *before; /* only points that may come before this one; NULL: all */
	bool are_copies;
};

/* The side that begins with point @i, of all sights: points are sorted by direction and namespace. */
struct side side_at(const struct flow *flow, const struct host *host, uint32_t i);

struct volume side_total(const struct side *side);

/* @return the packets that a point of SIGHT_BEYOND was the first to see */
struct volume side_first_sights(const struct flow *flow, const struct host *host,
				const struct point *point);

#endif
