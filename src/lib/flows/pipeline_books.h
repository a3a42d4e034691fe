/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Compares the packets that programs counted with those that arrived, and sums them up. */
#ifndef NETOBS_FLOWS_PIPELINE_BOOKS_H
#define NETOBS_FLOWS_PIPELINE_BOOKS_H

#include "pipeline_state.h"

/* Check that all counted packets of a generation that was read have arrived, and log a difference. */
void pipeline_balance(struct pipeline *pipeline);

/* At the end of a drain: report the packets that were seen, and the counts of interfaces. */
void pipeline_sum_up(struct pipeline *pipeline);

/*
 * Whether the generation that comes after the last drained one has entries left from before, or
 * flows were not reported for want of memory.
 */
bool pipeline_has_left(const struct pipeline *pipeline);

/**
 * @return whether all packets have been read that programs counted before @since_ns
 *         (CLOCK_BOOTTIME), including those of programs that were running then
 */
bool pipeline_has_read(const struct pipeline *pipeline, int64_t since_ns);

/* As of the last drain; `interfaces` and `shadowed` are left alone. */
void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats);

/* Packets that no process can report any more; pipeline_note() logs them. */
void pipeline_abandon(struct pipeline *pipeline, const struct count *count);

#endif
