/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "sides.h"

struct volume returned_sum(const struct flow *flow, const struct host *host,
			   uint16_t netns)
{
	struct volume sum = { 0 };

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		const struct netif *netif = point_netif(host, point);

		if (point->netns == netns && point->egress && netif &&
		    netif->type == LINK_TYPE_IFB)
			volume_add(&sum, &point->seen);
	}
	return sum;
}

void returned_leave_out(const struct flow *flow, const struct host *host,
			const struct point *point, struct volume *left)
{
	struct volume returned;

	if (!point->egress)
		return;
	returned = returned_sum(flow, host, point->netns);
	*left = volume_less(*left, &returned);
	volume_max(left, &returned);
}
