/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The struct behind series. */
#ifndef NETOBS_GROUP_SERIES_STATE_H
#define NETOBS_GROUP_SERIES_STATE_H

#include "candidates.h"
#include "keys.h"
#include "series_sum.h"
#include "series_table.h"
#include "server.h"
#include "session_ends.h"

enum {
	SERIES_NAME_MAX = sizeof(((struct netobs_group_record *)NULL)->name) - 1,
};

struct netobs_series {
	struct group_keys keys;
	char name[SERIES_NAME_MAX + 1];
	uint32_t histograms; /* enum netobs_series_histogram, or-ed */
	struct series_table table;
	struct candidates candidates;
	struct netobs_series_row other, left;
	struct series_sum other_sum; /* of this interval */
	struct netobs_times *other_times, *left_times, *other_sum_times;
	struct servers servers;
	struct session_ends ends;
	uint32_t secret[GROUP_KEY_BYTES_MAX / sizeof(uint32_t)];
	/* For the end of an interval: */
	struct candidate **heaviest;
	struct series_slot **lightest;
};

#endif
