/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "pipeline.h"

#include "base/clock.h"
#include "engine/store.h"

void pipeline_adopt(struct pipeline *pipeline)
{
	pipeline_stats(pipeline, &pipeline->stats);
	pipeline->is_recovering[0] = pipeline->is_recovering[1] = true;
	pipeline_abandon(pipeline, &pipeline->store.unreported_before);
	pipeline->mode = MERGE_INTERVAL;
	pipeline->flip_ns = pipeline->begun_ns = clock_boot_ns();
	pipeline->drains++;
	pipeline->phase = PIPELINE_SETTLING;
}

void pipeline_leave(struct pipeline *pipeline)
{
	pipeline->is_leaving = true;
}

/* Before the note: else a process that is killed in between would leave them out of the log. */
static void log_abandoned(struct pipeline *pipeline)
{
	const struct count *count = &pipeline->found_abandoned;

	if (count->packets || count->bytes)
		log_warning(pipeline->log,
			    "persist: %llu packets, which an earlier process had not reported, are lost",
			    (unsigned long long)count->packets);
	pipeline->found_abandoned = (struct count){ 0 };
}

/* Packets left in the tables are drained later, by this process or by the next one. */
void pipeline_note(struct pipeline *pipeline)
{
	const uint32_t generation = pipeline->drain.generation;
	const struct count *unread = &pipeline->unread[generation];
	struct counters drained = pipeline->counted[generation];
	const struct volume *pending = &pipeline->merge.pending;
	const struct count unreported = { pending->packets, pending->bytes };

	drained.seen.packets -= unread->packets;
	drained.seen.bytes -= unread->bytes;
	log_abandoned(pipeline);
	store_note_drained(&pipeline->store, generation, &drained, &unreported);
}
