/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Rules about connections, for designs that are measured with many of them. */
#ifndef NETOBS_BENCH_RULES_H
#define NETOBS_BENCH_RULES_H

#include "engine/alerts.h"

enum { RULES = 100 };

enum rules_kind {
	RULES_NONE, /* there could be some */
	RULES_KEPT, /* no sample breaks one */
	RULES_HELD, /* each sample breaks all, and each connection has had its alerts */
	RULES_STORM /* each sample breaks all, and the limit stops nearly all alerts */
};

/**
 * Have the programs of a store that was opened with has_alerts compare samples with rules.
 *
 * @param ret_alerts  alerts_close()
 * @return 0, or -errno
 */
int rules_open(struct alerts *ret_alerts, struct store *store,
	       enum rules_kind kind, const struct log *log);

#endif
