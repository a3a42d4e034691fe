// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "metrics.h"

#include <stdio.h>
#include <string.h>

#include "service/text/human.h"

/* A reason that finds no free entry counts as "other". */
static struct drop_total *find_total(struct drop_totals *totals,
				     const char *reason, const char *kind)
{
	struct drop_total *total = totals->reasons;
	const struct drop_total *const end = total + totals->n;

	while (total < end &&
	       (strcmp(total->reason, reason) || total->kind != kind))
		total++;
	if (total < end)
		return total;
	if (totals->n >= DROP_REASONS_MAX) {
		total = &totals->reasons[DROP_REASONS_MAX];
		reason = kind = "other";
	}
	if (total == end)
		totals->n++;
	snprintf(total->reason, sizeof(total->reason), "%s", reason);
	total->kind = kind;
	return total;
}

void drop_totals_add(struct drop_totals *totals, const struct netobs_drop *drop)
{
	struct drop_total *total = find_total(totals, drop_reason_text(drop),
					      netobs_drop_kind_name(drop->kind));

	total->packets += drop->packets;
	total->bytes += drop->bytes;
}
