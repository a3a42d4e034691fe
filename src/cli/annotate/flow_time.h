/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Times of records, as exporters write them. */
#ifndef NETOBS_CLI_ANNOTATE_FLOW_TIME_H
#define NETOBS_CLI_ANNOTATE_FLOW_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"

/* Units of numeric times. */
enum time_unit { TIME_S, TIME_MS, TIME_US, TIME_NS };

struct flow_time {
	int64_t ms;	/* since 1970, at most 2^53; 0: not known */
	bool is_second; /* the exact time is within the second that begins then */
};

/**
 * Read a number, also as text, or a date such as "2026-11-21T17:06:31.709Z", with a "T" or a blank,
 * and "Z", "+01:00", "+0100" or nothing, which is the local time zone, at the end.
 *
 * @param ret_time  untouched on failure
 * @return false: it is none
 */
bool flow_time_read(struct json_value value, enum time_unit unit,
		    struct flow_time *ret_time);

/** @return the time in ms since 1970 that @value is, a number of them; 0: it is none */
int64_t flow_time_ms(struct json_value value);

#endif
