/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "pipeline_restart.h"

#include "base/clock.h"
#include "base/pages.h"
#include "engine/kept_memory.h"
#include "engine/store_pinned.h"
#include "fold_kept.h"
#include "fold_recover.h"
#include "pipeline_books.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct pinned_state *pinned_state_of(const struct pipeline *pipeline)
{
	const struct pinned *pinned = pipeline->store.options.pinned;

	return pinned ? pinned->state : NULL;
}

/* ---- What outlives the process ------------------------------------------------------- */

enum { NAME_SIZE = 32 };

static const char fold_name[] = "fold";
static const char batch_name[] = "fold_overflow";

static const char *name_chunk(char name[NAME_SIZE], uint32_t number)
{
	snprintf(name, NAME_SIZE, "fold_%u", number);
	return name;
}

static void *open_chunk(void *ctx, uint32_t number)
{
	char name[NAME_SIZE];

	return kept_memory_find(ctx, name_chunk(name, number), PAGES_HUGE);
}

static void *make_chunk(void *ctx, uint32_t number)
{
	char name[NAME_SIZE];

	return kept_memory_make(ctx, name_chunk(name, number), PAGES_HUGE);
}

static void close_chunk(void *ctx, void *chunk)
{
	(void)ctx;
	kept_memory_close(chunk, PAGES_HUGE);
}

static void remove_chunk(void *ctx, uint32_t number, void *chunk)
{
	char name[NAME_SIZE];

	kept_memory_remove(ctx, name_chunk(name, number), chunk, PAGES_HUGE);
}

static void *find_or_make(const struct pinned *pinned, const char *name,
			  size_t size)
{
	return kept_memory_find(pinned, name, size) ?:
		       kept_memory_make(pinned, name, size);
}

/* Remove the pinned memory: it would be out of date for the next process. */
static void remove_kept(const struct pinned *pinned)
{
	char name[NAME_SIZE];

	pinned_remove_map(pinned, fold_name);
	pinned_remove_map(pinned, batch_name);
	for (uint32_t i = 0; i < FOLD_CHUNKS_MAX; i++)
		pinned_remove_map(pinned, name_chunk(name, i));
}

/* False: without memory, the fold is this process's alone. */
static bool open_kept(struct pipeline *pipeline, struct pinned *pinned)
{
	struct kept_parts *kept = &pipeline->kept;

	kept->chunks = (struct fold_memory){ open_chunk, make_chunk,
					     close_chunk, remove_chunk, pinned };
	kept->fold_bytes = fold_kept_bytes(drain_n_sources(&pipeline->store));
	kept->fold = find_or_make(pinned, fold_name, kept->fold_bytes);
	kept->batch = find_or_make(pinned, batch_name, overflow_kept_bytes());
	if (kept->fold && kept->batch)
		return true;
	log_warning(pipeline->log,
		    "persist: no memory that outlives this process: %s; if it is killed, its counts are lost",
		    strerror(errno));
	pipeline_close_kept(pipeline);
	remove_kept(pinned);
	return false;
}

void pipeline_close_kept(struct pipeline *pipeline)
{
	struct kept_parts *kept = &pipeline->kept;

	if (kept->fold)
		kept_memory_close(kept->fold, kept->fold_bytes);
	if (kept->batch)
		kept_memory_close(kept->batch, overflow_kept_bytes());
	*kept = (struct kept_parts){ 0 };
}

/* An earlier process may have been killed after it had folded records. */
static void adopt_tails(const struct pipeline *pipeline)
{
	const struct store *store = &pipeline->store;

	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++) {
		struct cpu_state *state = &store->cpus[cpu];
		uint64_t at = fold_position(&pipeline->fold, cpu);

		if (at > state->log_tail &&
		    at - state->log_tail <= store->log_slots)
			__atomic_store_n(&state->log_tail, at, __ATOMIC_RELEASE);
	}
}

/* An earlier process may have been killed between the two. */
static void settle_state(struct pipeline *pipeline,
			 const struct pinned_state *state)
{
	if (state->settled != state->commits && state->next.is_complete)
		fold_reset(&pipeline->fold, state->next.generation);
	store_settle(&pipeline->store);
}

int pipeline_keep(struct pipeline *pipeline)
{
	struct pinned *pinned = pipeline->store.options.pinned;
	struct store *store = &pipeline->store;
	int err;

	if (!pinned || !pinned->state || !open_kept(pipeline, pinned))
		return 0;
	overflow_keep(&store->overflow, pipeline->kept.batch);
	err = fold_keep(&pipeline->fold, pipeline->kept.fold,
			drain_n_sources(store), &pipeline->kept.chunks);
	if (err && err != -ESTALE)
		return err;
	if (err) {
		overflow_forget_kept(&store->overflow);
		log_warning(pipeline->log,
			    "persist: %s: the counts of an earlier process cannot be read",
			    pinned->path);
	}
	adopt_tails(pipeline);
	settle_state(pipeline, pinned->state);
	pipeline->drain.is_held = pipeline_is_exact(pipeline);
	pipeline->merge.options.report_young = pipeline->drain.is_held;
	return drain_recover(&pipeline->drain);
}

/* ---- What does not ---------------------------------------------------------------------- */

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

/* @return the drained packets that no record has reported yet */
static struct count count_unreported(const struct pipeline *pipeline)
{
	const struct merge *merge = &pipeline->merge;

	return at_least_none((struct count){
		pipeline->entered.packets + merge->inferred.packets -
			merge->exported.packets - merge->small.packets -
			merge->lost.packets,
		pipeline->entered.bytes + merge->inferred.bytes -
			merge->exported.bytes - merge->small.bytes -
			merge->lost.bytes,
	});
}

void pipeline_commit(struct pipeline *pipeline)
{
	const struct pinned_state *state = pinned_state_of(pipeline);
	const struct drain *drain = &pipeline->drain;
	const struct count left = count_unreported(pipeline);

	if (!pipeline_is_exact(pipeline))
		return;
	pipeline->options.on_commit(state->commits + 1,
				    pipeline->options.commit_user);
	store_commit(&pipeline->store, drain->generation,
		     &pipeline->uncommitted, &left, drain->is_complete);
	if (drain->is_complete)
		fold_reset(&pipeline->fold, drain->generation);
	store_settle(&pipeline->store);
}

void pipeline_note_unreported(const struct pipeline *pipeline)
{
	struct pinned_state *state = pinned_state_of(pipeline);

	if (!state || pipeline->phase == PIPELINE_SETTLING ||
	    pipeline->phase == PIPELINE_DROPS ||
	    pipeline->phase == PIPELINE_LISTING ||
	    pipeline->phase == PIPELINE_READING ||
	    pipeline->phase == PIPELINE_DRAINING)
		return;
	if (!pipeline_is_exact(pipeline))
		state->unreported = count_unreported(pipeline);
	state->is_left = pipeline->is_leaving && pipeline_is_idle(pipeline) &&
			 pipeline->mode == MERGE_FINAL;
}
