/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Packets that the kernel dropped since the service began, by reason. */
#ifndef NETOBS_SERVICE_METRICS_DROP_TOTALS_H
#define NETOBS_SERVICE_METRICS_DROP_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/drop.h>

enum { DROP_REASONS_MAX = 96 };

struct drop_total {
	char reason[64]; /* the kernel's name without prefix; "": no reason */
	const char *kind;
	uint64_t packets, bytes;
};

struct drop_totals {
	/* The last place has all reasons that found none. */
	struct drop_total reasons[DROP_REASONS_MAX + 1];
	size_t n;
	uint64_t lost_packets, missed;
};

void drop_totals_add(struct drop_totals *totals, const struct netobs_drop *drop);

#endif
