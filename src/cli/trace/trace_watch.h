/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Implements netobsctl trace: a tracer, whose results it prints. */
#ifndef NETOBS_CLI_TRACE_TRACE_WATCH_H
#define NETOBS_CLI_TRACE_TRACE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "service/options/args.h"
#include "service/options/trace_budget.h"

enum trace_show { TRACE_SHOW_JOURNEYS, TRACE_SHOW_EVENTS, TRACE_SHOW_SUMMARY };

struct trace_request {
	const char *filter;		 /* NULL: all connections */
	uint32_t pid;			 /* 0: of any process */
	const char *command, *container; /* NULL: any */
	struct args_list rules; /* rules that connections must break first; none: trace all */
	struct args_list interfaces; /* interfaces on which rules are evaluated; none: all */
	uint32_t for_ms; /* after that */
	enum trace_show show;
	struct args_list layers;  /* layers of events; none: all */
	const char *svg;	  /* file for a picture; NULL: none */
	struct args_list outputs; /* values of -o */
	uint64_t count;		  /* 0: no limit */
	uint32_t duration_ms;	  /* 0: until a signal comes */
	uint32_t verbose;
	struct trace_budget budget;
};

/** @return whether events are wanted, and not journeys alone */
bool trace_request_has_events(const struct trace_request *request);

/** @return an exit status */
int trace_watch(const struct trace_request *request);

#endif
