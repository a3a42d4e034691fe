/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An entry of the programs' tables as a record. */
#ifndef NETOBS_DROPS_DROP_FILL_H
#define NETOBS_DROPS_DROP_FILL_H

#include "base/clock.h"
#include "bpf/drops.h"
#include "drop_names.h"

#include <netobs/drop.h>

struct drop_source {
	const struct clock *clock;
	const struct drop_names *names;
	int functions_fd; /* the map "drop_functions" */
};

/** @param time_ns  of the record, since 1970 */
void drop_fill(const struct drop_source *source, const struct drop_key *key,
	       const struct drop_value *value, int64_t time_ns,
	       struct netobs_drop *ret_drop);

#endif
