/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Implements netobsctl drops: an observer, and a table for each interval. */
#ifndef NETOBS_CLI_DROPS_DROP_WATCH_H
#define NETOBS_CLI_DROPS_DROP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "service/options/args.h"

struct drop_request {
	const char *filter;	     /* NULL: all */
	struct args_list interfaces; /* names; none: all */
	bool wants_benign;
	bool is_json;
	bool by_flow;
	uint32_t interval_ms;
	uint32_t duration_ms; /* 0: until a signal comes */
	uint32_t rows;	      /* 0: all */
	uint32_t verbose;
};

/** @return an exit status */
int drop_watch(const struct drop_request *request);

#endif
