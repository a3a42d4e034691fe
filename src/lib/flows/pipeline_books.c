/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "pipeline.h"

#include "base/util.h"
#include "host/host.h"

#include <string.h>

enum { FINAL_DRAINS = 3 };

_Static_assert((int)NETOBS_UNPARSED_REASONS == (int)UNPARSED_MAX, "same reasons");
_Static_assert((int)NETOBS_LOST_KERNEL_MEMORY == (int)LOST_NO_MEMORY,
	       "same reasons");

static bool is_some(const struct count *count)
{
	return count->packets || count->bytes;
}

bool pipeline_has_left(const struct pipeline *pipeline)
{
	return pipeline->mode == MERGE_FINAL &&
	       pipeline->final_drains < FINAL_DRAINS &&
	       (is_some(&pipeline->unread[pipeline->generation.current]) ||
		pipeline->merge.pending.packets);
}

/* A program that ran may have written to the generation that the first drain began. */
bool pipeline_has_read(const struct pipeline *pipeline, int64_t since_ns)
{
	return pipeline_is_idle(pipeline) &&
	       pipeline->begun_before_ns > since_ns &&
	       !is_some(&pipeline->unread[0]) && !is_some(&pipeline->unread[1]);
}

/* @return the packets that were counted, but became no entry */
static struct count count_others(const struct counters *counters)
{
	struct count sum = counters->filtered;

	count_add(&sum, &counters->sampled_out);
	for (int i = 0; i < UNPARSED_MAX; i++)
		count_add(&sum, &counters->unparsed[i]);
	for (int i = 0; i < LOST_MAX; i++)
		count_add(&sum, &counters->lost[i]);
	return sum;
}

/* @return the packets that a generation at rest has counted, and that did not arrive */
static struct count count_missing(struct pipeline *pipeline)
{
	uint32_t generation = pipeline->drain.generation;
	struct counters *counted = &pipeline->counted[generation];
	const struct count *arrived = &pipeline->arrived[generation];
	struct count others;

	store_read_counters(&pipeline->store, generation, counted);
	pipeline->unclaimed = store_unclaimed(&pipeline->store);
	others = count_others(counted);
	return (struct count){
		counted->seen.packets - others.packets - arrived->packets,
		counted->seen.bytes - others.bytes - arrived->bytes,
	};
}

void pipeline_abandon(struct pipeline *pipeline, const struct count *count)
{
	count_add(&pipeline->abandoned, count);
	count_add(&pipeline->found_abandoned, count);
}

/*
 * All counted packets must have arrived, except those that could not be read or that another
 * process had read.
 */
static void balance_books(struct pipeline *pipeline)
{
	uint32_t generation = pipeline->drain.generation;
	struct count *arrived = &pipeline->arrived[generation];
	struct count lack = count_missing(pipeline);

	pipeline->unread[generation] = (struct count){ 0 };
	if (pipeline->read_err && is_some(&lack)) {
		pipeline->unread[generation] = lack;
		log_error(pipeline->log, "cannot read the flow tables: %s",
			  strerror(-pipeline->read_err));
		return;
	}
	if (pipeline->is_recovering[generation] && (int64_t)lack.packets >= 0) {
		pipeline_abandon(pipeline, &lack);
		count_add(arrived, &lack);
		lack = (struct count){ 0 };
	}
	pipeline->is_recovering[generation] = false;
	if (is_some(&lack))
		log_error(pipeline->log,
			  "seen packets are not accounted for: %lld packets, %lld bytes are missing",
			  lack.packets, lack.bytes);
}

static void add_outcomes(struct outcomes to[2],
			 const struct count from[2][OUTCOMES_COUNTED])
{
	for (int d = 0; d < 2; d++)
		for (int i = 0; i < OUTCOMES_COUNTED; i++)
			count_add(&to[d].counts[i], &from[d][i]);
}

static bool on_outcomes(void *ctx, uint16_t netns, uint32_t ifindex,
			const struct count counts[2][OUTCOMES_COUNTED])
{
	struct pipeline *pipeline = ctx;
	struct netif *netif =
		ifindex ? host_find(pipeline->merge.host, netns, ifindex) : NULL;

	add_outcomes(pipeline->crossed, counts);
	if (netif)
		add_outcomes(netif->crossed, counts);
	return netif && !netif->gone_ns;
}

void pipeline_balance(struct pipeline *pipeline)
{
	int ret;

	balance_books(pipeline);
	ret = outcomes_take(&pipeline->store, pipeline->drain.generation,
			    on_outcomes, pipeline);
	if (ret < 0)
		log_error(pipeline->log,
			  "cannot read the counts of interfaces: %s",
			  strerror(-ret));
}

/* Call it at the end of a drain, so that all interfaces and their sums are of one moment. */
static void report_outcomes(struct pipeline *pipeline)
{
	struct netns *netns;

	memcpy(pipeline->reported, pipeline->crossed, sizeof(pipeline->reported));
	host_for_each_netif(pipeline->merge.host, netns, netif)
		memcpy(netif->reported, netif->crossed, sizeof(netif->reported));
}

/*
 * Packets that never became an entry, first sights, and packets that were counted without an
 * entry. This sum must equal the packets that were exported, are pending or were lost: that
 * checks all code between the programs and the records.
 */
static void sum_up_seen(struct pipeline *pipeline)
{
	struct count *seen = &pipeline->seen;

	*seen = pipeline->entered;
	count_add(seen, &pipeline->merge.inferred);
	count_add(seen, &pipeline->unclaimed);
	count_add(seen, &pipeline->abandoned);
	for (int g = 0; g < GENERATIONS; g++) {
		const struct count *counted = &pipeline->counted[g].seen;

		seen->packets += counted->packets - pipeline->arrived[g].packets;
		seen->bytes += counted->bytes - pipeline->arrived[g].bytes;
	}
}

void pipeline_sum_up(struct pipeline *pipeline)
{
	sum_up_seen(pipeline);
	report_outcomes(pipeline);
}

static struct netobs_count to_count(const struct volume *volume)
{
	return (struct netobs_count){ volume->packets, volume->bytes };
}

/* The bytes are negative if a total has fewer bytes than its first sights. */
static struct netobs_count count_inferred(const struct merge *merge)
{
	struct netobs_count inferred = to_count(&merge->inferred);

	if ((int64_t)inferred.bytes < 0)
		inferred.bytes = 0;
	return inferred;
}

static struct netobs_stats sum_up_stats(const struct pipeline *pipeline)
{
	/* If it is not, a later drain, or the next process, reads the rest. */
	const bool is_over =
		pipeline->mode == MERGE_FINAL && pipeline_is_idle(pipeline) &&
		!pipeline->is_leaving && !pipeline_has_left(pipeline);
	const struct merge *merge = &pipeline->merge;
	struct netobs_stats stats = {
		.sz = sizeof(stats),
		.exported = to_count(&merge->exported),
		.filtered = to_count(&merge->small),
		.small = to_count(&merge->small),
		.flows = merge->records,
		.drains = pipeline->drains,
		.early_drains = pipeline->early_drains,
		.table_entries = pipeline->table_entries,
	};
	struct netobs_count *rest;

	for (int g = 0; g < GENERATIONS; g++) {
		const struct counters *counted = &pipeline->counted[g];

		count_add(&stats.observed, &counted->seen);
		count_add(&stats.filtered, &counted->filtered);
		count_add(&stats.sampled_out, &counted->sampled_out);
		count_add(&stats.spilled, &counted->spilled);
		for (int i = 0; i < UNPARSED_MAX; i++)
			count_add(&stats.unparsed[i], &counted->unparsed[i]);
		for (int i = 0; i < LOST_MAX; i++)
			count_add(&stats.lost[i], &counted->lost[i]);
	}
	count_add(&stats.observed, &pipeline->unclaimed);
	count_add(&stats.lost[NETOBS_LOST_KERNEL_MEMORY], &pipeline->unclaimed);
	stats.lost[NETOBS_LOST_MEMORY] = to_count(&merge->lost);
	count_add(&stats.lost[NETOBS_LOST_RESTART], &pipeline->abandoned);
	rest = is_over ? &stats.lost[NETOBS_LOST_MEMORY] : &stats.pending;
	count_add(rest, &merge->pending);
	for (int g = 0; g < GENERATIONS; g++)
		count_add(rest, &pipeline->unread[g]);
	stats.inferred = count_inferred(merge);
	count_add(&stats.seen, &pipeline->seen);
	flow_extras_call(&merge->options.extras, add_stats, &stats);
	return stats;
}

void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats)
{
	struct netobs_stats stats = pipeline->stats;

	if (pipeline_is_idle(pipeline))
		stats = sum_up_stats(pipeline);
	stats.interfaces = ret_stats->interfaces;
	stats.shadowed = ret_stats->shadowed;
	stats.kernel_memory = store_bytes(&pipeline->store);
	stats.flow_memory = fold_bytes(&pipeline->fold);
	*ret_stats = stats;
}

/* ---- Restart ------------------------------------------------------------------------ */

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

	if (is_some(count))
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
