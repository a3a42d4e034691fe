// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "ahead.h"

void ahead_add(struct ahead *ahead, uint64_t from, uint64_t end)
{
	for (uint32_t i = 0; i < ahead->n; i++)
		if (ahead->ranges[i].end == from) {
			ahead->ranges[i].end = end;
			return;
		}
	if (ahead->n == AHEAD_MAX)
		return;
	ahead->ranges[ahead->n].from = from;
	ahead->ranges[ahead->n++].end = end;
}

bool ahead_has(const struct ahead *ahead, uint64_t end)
{
	for (uint32_t i = 0; i < ahead->n; i++)
		if (end > ahead->ranges[i].from && end <= ahead->ranges[i].end)
			return true;
	return false;
}

void ahead_settle(struct ahead *ahead, uint64_t end)
{
	for (uint32_t i = 0; i < ahead->n;)
		if (ahead->ranges[i].end <= end)
			ahead->ranges[i] = ahead->ranges[--ahead->n];
		else
			i++;
}
