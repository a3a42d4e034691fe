/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "pipeline.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

enum {
	/* More flows of the next drain, 4 MiB, are left where they count as lost. */
	HELD_MAX = 32768,
	RELEASE_BATCHES = 64, /* a slice */
	/* Slots of all logs: a quarter of a millisecond between slices of a drain, two else. */
	STEP_SLOTS = 2048,
	RELIEF_SLOTS = 16384,
	REST_MIN_MS = 20,
	/* A flow in this process, seen at a few points. */
	FLOW_BYTES = sizeof(struct flow) + 4 * sizeof(struct point) + 48,
};

_Static_assert((int)NETOBS_UNPARSED_REASONS == (int)UNPARSED_MAX, "same reasons");
_Static_assert((int)NETOBS_LOST_KERNEL_MEMORY == (int)LOST_NO_MEMORY,
	       "same reasons");

_Static_assert((int)MERGE_BATCH >= (int)BUCKET_SLOTS, "a bucket is a batch");

static void add_tally(struct count *to, const struct flow_tally *tally)
{
	to->packets += tally->packets;
	to->bytes += tally->bytes;
}

/* First sights are counted here, apart from the flows, to check those. */
static void note_arrivals(struct pipeline *pipeline, uint32_t generation,
			  const struct flow_entry *const *entries, int n,
			  struct sighting *ret_sightings)
{
	merge_look(&pipeline->merge, entries, n, ret_sightings);
	for (int i = 0; i < n; i++) {
		const struct flow_tally *tally = &entries[i]->tally;

		add_tally(&pipeline->arrived[generation], tally);
		if (ret_sightings[i].sight == SIGHT_FIRST)
			add_tally(&pipeline->entered, tally);
	}
}

/* Up to MERGE_BATCH entries; @is_announced: all keys were, before the first entry. */
static void merge_entries(struct pipeline *pipeline, uint32_t generation,
			  bool is_announced,
			  const struct flow_entry *const *entries, int n)
{
	struct sighting sightings[MERGE_BATCH];

	note_arrivals(pipeline, generation, entries, n, sightings);
	for (int i = 0; i < n; i++) {
		if (is_announced)
			merge_deliver(&pipeline->merge, entries[i],
				      &sightings[i]);
		else
			merge_keep(&pipeline->merge, entries[i], &sightings[i]);
	}
}

/* Entries of the generation that is still being written to belong to its drain. */
static void keep_or_hold(struct pipeline *pipeline, uint32_t generation,
			 const struct flow_entry *entry)
{
	if (generation == generation_old(&pipeline->generation) ||
	    fold_add_entry(&pipeline->held, generation, entry))
		merge_entries(pipeline, generation, false, &entry, 1);
}

static int on_event(void *ctx, void *data, size_t size)
{
	const struct event *event = data;

	/* The watermark notice is shorter: that it came was all it had to say. */
	if (size >= sizeof(*event) && event->type == EVENT_ENTRY)
		keep_or_hold(ctx, event->generation, &event->entry);
	return 0;
}

static bool may_hold_more(const struct pipeline *pipeline)
{
	return fold_count(&pipeline->held, pipeline->generation.current) <
	       HELD_MAX;
}

/* Of a log: the rest of it stays there when too much is held. */
static bool on_refused(void *ctx, uint32_t generation,
		       const struct flow_entry *entry)
{
	struct pipeline *pipeline = ctx;

	if (generation == pipeline->generation.current && !may_hold_more(pipeline))
		return false;
	keep_or_hold(pipeline, generation, entry);
	return true;
}

/* Returns how many there were; 0: no more of them. */
static int release_batch(struct pipeline *pipeline, uint32_t generation)
{
	const struct flow_entry *held = NULL, *entries[MERGE_BATCH];
	int n = (int)min_u64(MERGE_BATCH,
			     fold_entries(&pipeline->held, generation,
					  pipeline->held_next, &held));

	for (int i = 0; i < n; i++)
		entries[i] = &held[i];
	merge_entries(pipeline, generation, false, entries, n);
	pipeline->held_next += (uint32_t)n;
	return n;
}

/* Merge a slice of the entries held for this drain. False: there are no more. */
static bool release_held(struct pipeline *pipeline)
{
	uint32_t generation = generation_old(&pipeline->generation);

	for (int i = 0; i < RELEASE_BATCHES; i++) {
		if (release_batch(pipeline, generation))
			continue;
		fold_reset(&pipeline->held, generation);
		return false;
	}
	return true;
}

static void on_entries(void *ctx, enum drain_reading reading,
		       const struct flow_entry *const *entries, int n)
{
	struct pipeline *pipeline = ctx;

	if (reading == DRAIN_FIRST)
		merge_announce(&pipeline->merge, entries, n);
	else
		merge_entries(pipeline, pipeline->drain.generation,
			      reading == DRAIN_SECOND, entries, n);
}

/* Flows are reported early when they are half of what there is room for. */
static void limit_kept(struct pipeline *pipeline)
{
	struct merge_options *merge = &pipeline->options.merge;
	uint64_t max = pipeline->store.process_bytes /
		       (FLOW_BYTES + flow_extras_bytes(&merge->extras));

	if (!pipeline->store.process_bytes)
		return;
	merge->max_kept = min_u64(max, UINT32_MAX);
	merge->max_flows = min_u64(merge->max_flows, max / 2);
}

int pipeline_init(struct pipeline *pipeline,
		  const struct pipeline_options *options,
		  const struct host *host, const struct log *log)
{
	int err;

	*pipeline = (struct pipeline){ .log = log, .options = *options };
	clock_init(&pipeline->clock, options->store.clock);
	err = store_open(&pipeline->store, &options->store, log);
	if (err)
		return err;
	pipeline->options.merge.tunnel_addrs_fd =
		store_tunnel_addrs_fd(&pipeline->store);
	limit_kept(pipeline);
	merge_init(&pipeline->merge, &pipeline->options.merge, host,
		   &pipeline->clock);
	fold_init(&pipeline->held, &pipeline->store.secret, 0);
	drain_init(&pipeline->drain, &pipeline->store, on_event, on_entries,
		   pipeline);
	err = logs_init(&pipeline->logs, &pipeline->store, on_refused, pipeline);
	return err ?: generation_init(&pipeline->generation, &pipeline->store);
}

void pipeline_done(struct pipeline *pipeline)
{
	generation_done(&pipeline->generation);
	logs_done(&pipeline->logs);
	merge_done(&pipeline->merge);
	store_close(&pipeline->store);
	fold_done(&pipeline->held);
}

/* The next generation will hold about as much as this one does. */
static void fit_next(struct pipeline *pipeline)
{
	const struct generation *generation = &pipeline->generation;
	struct tables *tables = &pipeline->store.tables;

	tuning_expect(&tables->tuning,
		      pipeline->store.states[generation->current].inserts);
	tables_fit(tables, generation_old(generation));
}

static void flip(struct pipeline *pipeline)
{
	/* Making tables takes its time, and flows go on coming meanwhile. */
	pipeline->flip_ns = pipeline->now_ns;
	if (pipeline->clock.kind != CLOCK_PACKET)
		pipeline->flip_ns += clock_boot_ns() - pipeline->begin_ns;
	generation_flip(&pipeline->generation);
	pipeline->phase = PIPELINE_SETTLING;
}

/* It takes a second where flows are a million, and the ring fills in 20 ms. */
static void empty_ring(struct pipeline *pipeline)
{
	if (may_hold_more(pipeline))
		drain_events(&pipeline->drain);
}

/* A table that is being made may be one for the generation that ends. */
static void step_fitting(struct pipeline *pipeline)
{
	struct tables *tables = &pipeline->store.tables;

	if (tables_step(tables) == -EAGAIN)
		return;
	if (!pipeline->is_fit) {
		pipeline->is_fit = true;
		fit_next(pipeline);
		if (tables_step(tables) == -EAGAIN)
			return;
	}
	flip(pipeline);
}

void pipeline_begin(struct pipeline *pipeline, enum merge_mode mode,
		    int64_t now_ns)
{
	assert(pipeline_is_idle(pipeline));
	pipeline->mode = mode;
	pipeline->drains++;
	pipeline->early_drains += mode == MERGE_EARLY;
	pipeline->now_ns = now_ns;
	pipeline->begin_ns = clock_boot_ns();
	pipeline->cost_ns = 0;
	pipeline->is_fit = mode == MERGE_FINAL; /* nothing is counted after it */
	pipeline->phase = PIPELINE_FITTING;
	clock_calibrate(&pipeline->clock);
	pipeline_step(pipeline);
}

static enum pipeline_relief grow(struct pipeline *pipeline)
{
	struct tables *tables = &pipeline->store.tables;
	int err = tables_is_making(tables) ?
			  0 :
			  tables_grow(tables, pipeline->generation.current);

	err = err ?: tables_step(tables);
	if (err == -EAGAIN)
		return PIPELINE_MAKING_ROOM;
	return err ? PIPELINE_FULL : PIPELINE_RELIEVED;
}

static enum pipeline_relief relieve_tables(struct pipeline *pipeline)
{
	struct store *store = &pipeline->store;
	const struct table_state *state =
		&store->states[pipeline->generation.current];

	if (pipeline->phase == PIPELINE_FITTING) /* room comes with the flip */
		return PIPELINE_MAKING_ROOM;
	if (tables_is_making(&store->tables))
		return grow(pipeline);
	if (!state->announced) /* it was the generation before, or a log */
		return PIPELINE_RELIEVED;
	if (state->inserts < state->watermark) /* the ring buffer fills */
		return PIPELINE_FULL;
	return grow(pipeline);
}

enum pipeline_relief pipeline_relieve(struct pipeline *pipeline)
{
	enum pipeline_relief relief;
	bool is_behind;

	drain_events(&pipeline->drain);
	is_behind = logs_read(&pipeline->logs, RELIEF_SLOTS);
	relief = relieve_tables(pipeline);
	return is_behind && relief == PIPELINE_RELIEVED ? PIPELINE_MAKING_ROOM :
							  relief;
}

static void wait_ms(uint32_t ms)
{
	const struct timespec wait = { .tv_nsec = ms * NSEC_PER_MSEC };

	if (ms)
		nanosleep(&wait, NULL);
}

bool pipeline_relieve_now(struct pipeline *pipeline)
{
	enum pipeline_relief relief;

	while ((relief = pipeline_relieve(pipeline)) == PIPELINE_MAKING_ROOM)
		wait_ms(PIPELINE_ROOM_WAIT_MS);
	return relief == PIPELINE_RELIEVED;
}

static void start_releasing(struct pipeline *pipeline)
{
	merge_begin(&pipeline->merge, pipeline->mode,
		    clock_to_stamp(&pipeline->clock, pipeline->flip_ns));
	logs_settle(&pipeline->logs, pipeline->clock.kind != CLOCK_PACKET);
	pipeline->held_next = 0;
	pipeline->phase = PIPELINE_RELEASING;
}

static void start_draining(struct pipeline *pipeline)
{
	drain_start(&pipeline->drain, generation_old(&pipeline->generation));
	merge_expect(&pipeline->merge, pipeline->drain.inserts);
	pipeline->table_entries = pipeline->drain.inserts;
	pipeline->phase = PIPELINE_DRAINING;
}

/* What became of packets other than an entry. */
static struct count count_others(const struct counters *counters)
{
	struct count sum = counters->filtered;

	sum.packets += counters->sampled_out.packets;
	sum.bytes += counters->sampled_out.bytes;
	for (int i = 0; i < UNPARSED_MAX; i++) {
		sum.packets += counters->unparsed[i].packets;
		sum.bytes += counters->unparsed[i].bytes;
	}
	for (int i = 0; i < LOST_MAX; i++) {
		sum.packets += counters->lost[i].packets;
		sum.bytes += counters->lost[i].bytes;
	}
	return sum;
}

/* What a generation at rest has counted and what did not arrive. */
static struct count missing(struct pipeline *pipeline)
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

/* All that was counted must have arrived. */
static void balance(struct pipeline *pipeline)
{
	struct count lack = missing(pipeline);

	if (lack.packets || lack.bytes)
		log_error(pipeline->log,
			  "the books do not balance: %lld packets, %lld bytes are missing",
			  lack.packets, lack.bytes);
}

static void step_draining(struct pipeline *pipeline)
{
	int ret;

	ret = drain_step(&pipeline->drain);
	if (ret > 0)
		return;
	pipeline->phase = PIPELINE_SWEEPING;
	if (ret < 0)
		log_error(pipeline->log, "cannot read the flow table: %s",
			  strerror(-ret));
	else
		balance(pipeline);
}

/*
 * What never became an entry, first sights, and what was counted without one. That
 * this is what was exported, is pending or lost is a check of all that lies
 * between the programs and the records.
 */
static void sum_up_seen(struct pipeline *pipeline)
{
	const struct volume *inferred = &pipeline->merge.inferred;
	struct count *seen = &pipeline->seen;

	*seen = pipeline->entered;
	seen->packets += inferred->packets + pipeline->unclaimed.packets;
	seen->bytes += inferred->bytes + pipeline->unclaimed.bytes;
	for (int g = 0; g < GENERATIONS; g++) {
		const struct count *counted = &pipeline->counted[g].seen;

		seen->packets += counted->packets - pipeline->arrived[g].packets;
		seen->bytes += counted->bytes - pipeline->arrived[g].bytes;
	}
}

static void step_sweeping(struct pipeline *pipeline)
{
	if (merge_sweep(&pipeline->merge))
		return;
	pipeline->phase = PIPELINE_IDLE;
	sum_up_seen(pipeline);
	if (pipeline->options.on_interval)
		pipeline->options.on_interval(pipeline->options.user);
}

static void step(struct pipeline *pipeline)
{
	switch (pipeline->phase) {
	case PIPELINE_FITTING:
		step_fitting(pipeline);
		break;
	case PIPELINE_SETTLING:
		if (generation_settle(&pipeline->generation))
			start_releasing(pipeline);
		break;
	case PIPELINE_RELEASING:
		if (!logs_complete(&pipeline->logs,
				   generation_old(&pipeline->generation),
				   RELIEF_SLOTS) &&
		    !release_held(pipeline))
			start_draining(pipeline);
		break;
	case PIPELINE_DRAINING:
		step_draining(pipeline);
		break;
	case PIPELINE_SWEEPING:
		step_sweeping(pipeline);
		break;
	case PIPELINE_IDLE:
		break;
	}
}

/*
 * Flows cost what they cost, whenever they are drained; what more drains cost is
 * bounded by resting as long as the last one took of a CPU.
 */
static void rest(struct pipeline *pipeline)
{
	pipeline->rested_ns =
		clock_boot_ns() +
		max_u64(pipeline->cost_ns, REST_MIN_MS * NSEC_PER_MSEC);
}

bool pipeline_step(struct pipeline *pipeline)
{
	int64_t start_ns = clock_thread_ns();

	if (pipeline_is_idle(pipeline))
		return false;
	empty_ring(pipeline);
	logs_read(&pipeline->logs, STEP_SLOTS);
	step(pipeline);
	pipeline->cost_ns += clock_thread_ns() - start_ns;
	if (!pipeline_is_idle(pipeline))
		return true;
	rest(pipeline);
	return false;
}

void pipeline_finish(struct pipeline *pipeline)
{
	/* In replay the writer is this very thread. */
	bool has_writers = pipeline->clock.kind != CLOCK_PACKET;

	do {
		if (has_writers || !pipeline_is_settling(pipeline))
			wait_ms(pipeline_wait_ms(pipeline));
	} while (pipeline_step(pipeline));
}

static void add_count(struct netobs_count *to, const struct count *from)
{
	to->packets += from->packets;
	to->bytes += from->bytes;
}

static struct netobs_count to_count(const struct volume *volume)
{
	return (struct netobs_count){ volume->packets, volume->bytes };
}

void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats)
{
	const struct merge *merge = &pipeline->merge;
	struct netobs_stats stats = {
		.sz = sizeof(stats),
		.exported = to_count(&merge->exported),
		.filtered = to_count(&merge->small),
		.small = to_count(&merge->small),
		.pending = to_count(&merge->pending),
		.flows = merge->records,
		.drains = pipeline->drains,
		.early_drains = pipeline->early_drains,
		.table_entries = pipeline->table_entries,
		.kernel_memory = store_bytes(&pipeline->store),
		.interfaces = ret_stats->interfaces,
		.shadowed = ret_stats->shadowed,
	};

	for (int g = 0; g < GENERATIONS; g++) {
		const struct counters *counted = &pipeline->counted[g];

		add_count(&stats.observed, &counted->seen);
		add_count(&stats.filtered, &counted->filtered);
		add_count(&stats.sampled_out, &counted->sampled_out);
		add_count(&stats.spilled, &counted->spilled);
		for (int i = 0; i < UNPARSED_MAX; i++)
			add_count(&stats.unparsed[i], &counted->unparsed[i]);
		for (int i = 0; i < LOST_MAX; i++)
			add_count(&stats.lost[i], &counted->lost[i]);
	}
	add_count(&stats.observed, &pipeline->unclaimed);
	add_count(&stats.lost[NETOBS_LOST_KERNEL_MEMORY], &pipeline->unclaimed);
	stats.lost[NETOBS_LOST_MEMORY] = to_count(&merge->lost);
	stats.inferred = to_count(&merge->inferred);
	add_count(&stats.seen, &pipeline->seen);
	*ret_stats = stats;
}
