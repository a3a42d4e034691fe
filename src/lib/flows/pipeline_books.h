/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Compares what programs have counted with what arrived, and sums up what became of it. */
#ifndef NETOBS_FLOWS_PIPELINE_BOOKS_H
#define NETOBS_FLOWS_PIPELINE_BOOKS_H

#include "pipeline_state.h"

/* Of a generation that has been read, all that was counted must have arrived: check, and log. */
void pipeline_balance(struct pipeline *pipeline);

/* At the end of a drain: report the packets that were seen, and the counts of interfaces. */
void pipeline_sum_up(struct pipeline *pipeline);

/*
 * Whether the generation after that of the last drain has something that was left before, or
 * flows were not reported for want of memory.
 */
bool pipeline_has_left(const struct pipeline *pipeline);

/**
 * @return whether all has been read that programs wrote before @since_ns (CLOCK_BOOTTIME), or,
 *         of those that ran then, after it
 */
bool pipeline_has_read(const struct pipeline *pipeline, int64_t since_ns);

/* As of the last drain; `interfaces` and `shadowed` are left alone. */
void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats);

/* Packets that no process can report any more; pipeline_note() logs them. */
void pipeline_abandon(struct pipeline *pipeline, const struct count *count);

#endif
