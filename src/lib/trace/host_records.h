/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of what the network namespaces count that chosen connections pass: one a second of each, from the
 * first event there until some time after the last one.
 */
#ifndef NETOBS_TRACE_HOST_RECORDS_H
#define NETOBS_TRACE_HOST_RECORDS_H

#include <netobs/trace.h>
#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

struct host_records;

/**
 * @param on_record  called for each struct netobs_host
 * @param missing  1 << enum netobs_trace_point: the kernel has no tracepoint for it
 * @return 0; -ENOMEM
 */
int host_records_open(void (*on_record)(void *ctx,
					const struct netobs_record *record),
		      void *ctx, uint32_t missing,
		      struct host_records **ret_records);

/**
 * Note an event of a chosen connection.
 *
 * @param is_uplink  its interface is one between this host and others
 * @param now_ns  CLOCK_BOOTTIME
 */
void host_records_note(struct host_records *records,
		       const struct netobs_trace_event *event, bool is_uplink,
		       int64_t now_ns);

/**
 * Read the counters of each namespace that is due, and make its record.
 *
 * @param wall_ns  ns since 1970 at @now_ns
 */
void host_records_sweep(struct host_records *records, int64_t now_ns,
			int64_t wall_ns);

/** Free it. NULL is fine. */
void host_records_close(struct host_records *records);

#endif
