/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a process notes about its drains for the next one, and what that makes of it. */
#include "pipeline.h"

#include "base/clock.h"

static struct pinned_state *pinned_state_of(const struct pipeline *pipeline)
{
	const struct pinned *pinned = pipeline->store.options.pinned;

	return pinned ? pinned->state : NULL;
}

void pipeline_abandon(struct pipeline *pipeline, const struct count *count)
{
	if (!count->packets && !count->bytes)
		return;
	pipeline->abandoned.packets += count->packets;
	pipeline->abandoned.bytes += count->bytes;
	log_warning(pipeline->log,
		    "persist: %llu packets, which an earlier process had not reported, are lost",
		    (unsigned long long)count->packets);
}

void pipeline_adopt(struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);

	pipeline_stats(pipeline, &pipeline->stats);
	if (!state->is_left)
		pipeline->is_recovering[0] = pipeline->is_recovering[1] = true;
	/* Flows of the last process; also of one that left, without memory to report all. */
	pipeline_abandon(pipeline, &state->unreported);
	state->unreported = (struct count){ 0 };
	pipeline->mode = MERGE_INTERVAL;
	pipeline->flip_ns = pipeline->begun_ns = clock_boot_ns();
	pipeline->drains++;
	pipeline->phase = PIPELINE_SETTLING;
}

void pipeline_leave(struct pipeline *pipeline)
{
	pipeline->is_leaving = true;
}

void pipeline_note_reading(const struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);

	if (state)
		state->is_left = false;
}

/* While a sweep goes on, what it infers is not summed up yet: then less may be known. */
static struct count at_least_none(struct count count)
{
	bool is_negative = (int64_t)count.packets < 0 || (int64_t)count.bytes < 0;

	return is_negative ? (struct count){ 0 } : count;
}

void pipeline_note_unreported(const struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);
	const struct merge *merge = &pipeline->merge;

	if (!state || pipeline->phase == PIPELINE_SETTLING ||
	    pipeline->phase == PIPELINE_READING ||
	    pipeline->phase == PIPELINE_DRAINING)
		return;
	state->unreported = at_least_none((struct count){
		pipeline->entered.packets + merge->inferred.packets -
			merge->exported.packets - merge->small.packets -
			merge->lost.packets,
		pipeline->entered.bytes + merge->inferred.bytes -
			merge->exported.bytes - merge->small.bytes -
			merge->lost.bytes,
	});
	state->is_left = pipeline->is_leaving && pipeline_is_idle(pipeline) &&
			 pipeline->mode == MERGE_FINAL;
}
