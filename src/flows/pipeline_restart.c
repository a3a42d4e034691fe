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

/* Records say how the packets in the tables were sampled. */
static bool is_labelled(const struct pipeline *pipeline,
			const struct pinned_state *state, uint32_t generation)
{
	const struct pinned_sampling ours = store_sampling(&pipeline->store);
	const struct pinned_sampling *theirs = &state->sampling[generation];

	return ours.mode == theirs->mode && ours.interval == theirs->interval;
}

/*
 * Before programs that sample in another way begin to count: have them count in the other
 * generation, unless that has packets, too. Then those of the two cannot be told apart.
 */
static void begin_relabelling(struct pipeline *pipeline,
			      struct pinned_state *state)
{
	struct generation *generation = &pipeline->generation;

	pipeline->is_relabelling = !is_labelled(pipeline, state, 0) ||
				   !is_labelled(pipeline, state, 1);
	if (state->has_old || is_labelled(pipeline, state, generation->current))
		return;
	state->sampling[generation_old(generation)] =
		store_sampling(&pipeline->store);
	state->has_old = true;
	generation_flip_adopted(generation);
}

void pipeline_label(struct pipeline *pipeline)
{
	const struct pinned_state *state = pinned_state_of(pipeline);
	struct record *record = &pipeline->merge.record;
	const struct pinned_sampling *sampling;

	if (!pipeline->is_relabelling)
		return;
	sampling = &state->sampling[generation_old(&pipeline->generation)];
	record->sampling = sampling->interval ?: 1;
	record->sampling_mode = (enum netobs_sampling)sampling->mode;
}

void pipeline_end_relabelling(struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);

	if (!pipeline->is_relabelling || state->has_old)
		return;
	state->sampling[generation_old(&pipeline->generation)] =
		store_sampling(&pipeline->store);
	if (!is_labelled(pipeline, state, pipeline->generation.current))
		return;
	pipeline->is_relabelling = false;
	pipeline->merge.record.sampling = pipeline->options.merge.sampling;
	pipeline->merge.record.sampling_mode =
		pipeline->options.merge.sampling_mode;
}

void pipeline_adopt(struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);

	pipeline_stats(pipeline, &pipeline->stats);
	if (!state->is_left) {
		pipeline->is_recovering[0] = pipeline->is_recovering[1] = true;
		pipeline_abandon(pipeline, &state->unreported);
	}
	state->unreported = (struct count){ 0 };
	begin_relabelling(pipeline, state);
	pipeline->mode = pipeline->is_relabelling ? MERGE_ALL : MERGE_INTERVAL;
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

void pipeline_note_old(const struct pipeline *pipeline, bool has_old)
{
	struct pinned_state *state = pinned_state_of(pipeline);

	if (state)
		state->has_old = has_old;
}

void pipeline_note_unreported(const struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);
	const struct merge *merge = &pipeline->merge;

	if (!state || pipeline->phase == PIPELINE_SETTLING ||
	    pipeline->phase == PIPELINE_READING ||
	    pipeline->phase == PIPELINE_DRAINING)
		return;
	state->unreported = (struct count){
		pipeline->entered.packets + merge->inferred.packets -
			merge->exported.packets - merge->small.packets -
			merge->lost.packets,
		pipeline->entered.bytes + merge->inferred.bytes -
			merge->exported.bytes - merge->small.bytes -
			merge->lost.bytes,
	};
	state->is_left = pipeline->is_leaving && pipeline_is_idle(pipeline) &&
			 pipeline->mode == MERGE_FINAL;
}
