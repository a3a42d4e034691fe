/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sums of what became of packets at interfaces. */
#ifndef NETOBS_SERVICE_METRICS_CROSSINGS_H
#define NETOBS_SERVICE_METRICS_CROSSINGS_H

#include <netobs/stats.h>

/* Nothing but counts, of which all are treated alike. */
enum { CROSSINGS_NUMBERS = sizeof(struct netobs_crossings) / sizeof(uint64_t) };

static inline void crossings_add(struct netobs_crossings *to,
				 const struct netobs_crossings *part)
{
	uint64_t *sums = (uint64_t *)to;
	const uint64_t *numbers = (const uint64_t *)part;

	for (int i = 0; i < CROSSINGS_NUMBERS; i++)
		sums[i] += numbers[i];
}

static inline void crossings_subtract(struct netobs_crossings *from,
				      const struct netobs_crossings *part)
{
	uint64_t *sums = (uint64_t *)from;
	const uint64_t *numbers = (const uint64_t *)part;

	for (int i = 0; i < CROSSINGS_NUMBERS; i++)
		sums[i] -= numbers[i];
}

#endif
