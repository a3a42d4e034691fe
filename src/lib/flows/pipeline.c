/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "pipeline.h"

#include "base/util.h"
#include "bpf/store/log.h"
#include "catalogue/direction.h"
#include "host/host.h"

#include <assert.h>
#include <netobs/probe.h>
#include <time.h>

enum {
	/*
	 * Slots of all logs. 1,000 take about half a millisecond, and a call may read RELIEF_SLOTS
	 * twice: for relief before a slice of a drain, and in the last step of that.
	 */
	STEP_SLOTS = 2048,
	RELIEF_SLOTS = 4096,
	REST_MIN_MS = 20,
	RETRIES = 20,
	RETRY_MS = 10,
	/* A flow in this process, seen at a few points. */
	FLOW_BYTES = sizeof(struct flow) + 4 * sizeof(struct point) + 48,
};

_Static_assert((int)MERGE_BATCH >= (int)BUCKET_SLOTS, "a bucket is a batch");

static void count_crossing(struct pipeline *pipeline,
			   const struct flow_entry *entry)
{
	const struct flow_key *key = &entry->key;
	struct netif *netif =
		host_find(pipeline->merge.host, key->netns, key->ifindex);
	enum direction direction = key->flags & KEY_EGRESS ? EGRESS : INGRESS;

	count_add(&pipeline->crossed[direction].counts[OUTCOME_FLOW],
		  &entry->tally);
	if (netif)
		count_add(&netif->crossed[direction].counts[OUTCOME_FLOW],
			  &entry->tally);
}

/* First sights are counted here, apart from the flows, to check those. */
static void note_arrivals(struct pipeline *pipeline, uint32_t generation,
			  const struct flow_entry *const *entries, int n,
			  struct sighting *ret_sightings)
{
	merge_look(&pipeline->merge, entries, n, ret_sightings);
	for (int i = 0; i < n; i++) {
		const struct flow_tally *tally = &entries[i]->tally;

		count_add(&pipeline->arrived[generation], tally);
		count_crossing(pipeline, entries[i]);
		if (ret_sightings[i].sight == SIGHT_FIRST)
			count_add(&pipeline->entered, tally);
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

/*
 * Handle a record for which the fold has no room: pass it on at once if its generation is being
 * read, else leave it in the log until a drain has made room.
 */
static size_t pass_slots(struct pipeline *pipeline, const struct log_slot *slots)
{
	uint32_t old = generation_old(&pipeline->generation);
	struct flow_entry entry;
	const struct flow_entry *entries[] = { &entry };
	size_t n_slots;

	if (pipeline->phase != PIPELINE_READING || log_generation(slots) != old)
		return 0;
	n_slots = log_read(slots, &entry);
	logs_release(&pipeline->logs, n_slots);
	merge_entries(pipeline, old, false, entries, 1);
	return n_slots;
}

/* @return how many of @n slots, from the first on, have records of the generation being read */
static size_t count_old(const struct pipeline *pipeline,
			const struct log_slot *slots, size_t n)
{
	uint32_t old = generation_old(&pipeline->generation);
	size_t i = 0;

	while (i < n && log_generation(&slots[i]) == old)
		i += 1 + is_log_long(&slots[i]);
	return min_u64(i, n);
}

static size_t on_records(void *ctx, const struct log_slot *slots, size_t n,
			 bool is_left)
{
	struct pipeline *pipeline = ctx;
	size_t n_used;

	if (pipeline->is_leaving && !is_left)
		n = count_old(pipeline, slots, n);
	if (!n)
		return 0;
	n_used = fold_add(&pipeline->fold, slots, n) ?:
			 pass_slots(pipeline, slots);

	pipeline->is_refusing |= !n_used;
	return n_used;
}

static void on_entries(void *ctx, enum drain_reading reading,
		       const struct flow_entry *const *entries, int n)
{
	struct pipeline *pipeline = ctx;

	if (reading == DRAIN_FIRST && !pipeline->drain.next)
		merge_expect(&pipeline->merge, pipeline->drain.n_folded);
	if (reading == DRAIN_FIRST)
		merge_announce(&pipeline->merge, entries, n);
	else
		merge_entries(pipeline, pipeline->drain.generation,
			      reading == DRAIN_SECOND, entries, n);
}

/* Report flows early once half of the room for them is used. */
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

int pipeline_open(struct pipeline *pipeline,
		  const struct pipeline_options *options, const struct log *log)
{
	int err;

	*pipeline = (struct pipeline){ .log = log, .options = *options };
	clock_init(&pipeline->clock, options->store.clock);
	err = store_open(&pipeline->store, &options->store, log);
	pipeline->options.merge.tunnel_addrs_fd =
		store_tunnel_addrs_fd(&pipeline->store);
	pipeline->options.merge.rates = &pipeline->store.rates;
	return err;
}

int pipeline_init(struct pipeline *pipeline, const struct host *host)
{
	const struct store_options *store = &pipeline->options.store;
	int err;

	limit_kept(pipeline);
	merge_init(&pipeline->merge, &pipeline->options.merge, host,
		   &pipeline->clock);
	fold_init(&pipeline->fold, &pipeline->store.secret,
		  store->opts->max_flows, pipeline->store.entry_bytes);
	drain_init(&pipeline->drain, &pipeline->store, &pipeline->fold,
		   on_entries, pipeline);
	err = logs_init(&pipeline->logs, &pipeline->store, on_records, pipeline);
	err = err ?: generation_init(&pipeline->generation, &pipeline->store);
	if (!err && pipeline->store.is_adopted)
		pipeline_adopt(pipeline);
	return err;
}

void pipeline_done(struct pipeline *pipeline)
{
	generation_done(&pipeline->generation);
	logs_done(&pipeline->logs);
	merge_done(&pipeline->merge);
	fold_done(&pipeline->fold);
	store_close(&pipeline->store);
}

void pipeline_begin(struct pipeline *pipeline, enum merge_mode mode,
		    int64_t now_ns)
{
	assert(pipeline_is_idle(pipeline));
	pipeline_stats(pipeline, &pipeline->stats);
	pipeline->mode = mode;
	pipeline->drains++;
	pipeline->early_drains += mode == MERGE_EARLY;
	pipeline->final_drains += mode == MERGE_FINAL;
	pipeline->flip_ns = now_ns;
	pipeline->begun_before_ns = pipeline->begun_ns;
	pipeline->begun_ns = clock_boot_ns();
	pipeline->cost_ns = 0;
	clock_calibrate(&pipeline->clock);
	flow_extras_call(&pipeline->options.merge.extras, before_flip,
			 generation_old(&pipeline->generation),
			 clock_to_stamp(&pipeline->clock, now_ns));
	generation_flip(&pipeline->generation);
	flow_extras_call(&pipeline->options.merge.extras, after_flip, now_ns);
	pipeline->phase = PIPELINE_SETTLING;
	pipeline->wait_ms = GENERATION_WAIT_MS;
}

/* More slots than programs fill between two looks at the logs. */
static uint64_t slots_of_logs(const struct store *store)
{
	return (uint64_t)store->n_cpus * store->log_slots;
}

enum pipeline_relief pipeline_relieve(struct pipeline *pipeline)
{
	bool is_behind;

	store_clear_notices(&pipeline->store);
	store_grow(&pipeline->store);
	pipeline->is_refusing = false;
	is_behind = logs_read(&pipeline->logs, RELIEF_SLOTS);
	if (pipeline->is_refusing ||
	    fold_is_filling(&pipeline->fold, pipeline->generation.current,
			    slots_of_logs(&pipeline->store)))
		return PIPELINE_FULL;
	return is_behind ? PIPELINE_BEHIND : PIPELINE_RELIEVED;
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

	while ((relief = pipeline_relieve(pipeline)) == PIPELINE_BEHIND)
		wait_ms(PIPELINE_BEHIND_MS);
	return relief == PIPELINE_RELIEVED;
}

/* Memory may be there a moment later, and this may be the last drain. */
static bool retry_later(struct pipeline *pipeline)
{
	if (pipeline->n_retries++ >= RETRIES)
		return false;
	pipeline->wait_ms = RETRY_MS;
	return true;
}

static void start_reading(struct pipeline *pipeline)
{
	bool has_writers = pipeline->clock.kind != CLOCK_PACKET;

	pipeline->n_retries = 0;
	pipeline->read_err = 0;
	flow_extras_call(&pipeline->options.merge.extras, settle,
			 generation_old(&pipeline->generation));
	merge_begin(&pipeline->merge, pipeline->mode,
		    clock_to_stamp(&pipeline->clock, pipeline->flip_ns));
	logs_settle(&pipeline->logs, has_writers);
	pipeline->phase = PIPELINE_READING;
	pipeline->wait_ms = has_writers ? LOGS_WAIT_MS : 0;
}

static void step_settling(struct pipeline *pipeline)
{
	if (!generation_settle(&pipeline->generation)) {
		pipeline->wait_ms = GENERATION_WAIT_MS;
		return;
	}
	pipeline->next_feature = 0;
	pipeline->phase = PIPELINE_FEATURES;
}

static void step_features(struct pipeline *pipeline)
{
	if (!flow_extras_step(&pipeline->options.merge.extras,
			      &pipeline->next_feature, &pipeline->wait_ms))
		start_reading(pipeline);
}

/*
 * A flow without a record in this interval may have one in the next, or at its active timeout: a
 * young flow waits for its first record.
 */
static void end_features(struct pipeline *pipeline)
{
	const struct merge_options *merge = &pipeline->merge.options;
	const int64_t wait_ns =
		max_u64(merge->active_timeout_ns, merge->interval_ns / 2);

	flow_extras_call(&merge->extras, end,
			 pipeline->mode == MERGE_FINAL ?
				 INT64_MAX :
				 pipeline->flip_ns - wait_ns);
}

static void step_reading(struct pipeline *pipeline)
{
	uint32_t generation = generation_old(&pipeline->generation);
	int ret = logs_complete(&pipeline->logs, generation, RELIEF_SLOTS);

	if (ret > 0) {
		pipeline->wait_ms = pipeline->logs.is_settling ? LOGS_WAIT_MS : 0;
		return;
	}
	if (ret < 0 && retry_later(pipeline))
		return;
	pipeline->read_err = ret;
	drain_start(&pipeline->drain, generation);
	pipeline->n_retries = 0;
	pipeline->phase = PIPELINE_DRAINING;
}

static void step_draining(struct pipeline *pipeline)
{
	int ret = drain_step(&pipeline->drain);

	if (ret > 0)
		return;
	if (ret < 0 && retry_later(pipeline)) {
		drain_start(&pipeline->drain, pipeline->drain.generation);
		return;
	}
	pipeline->phase = PIPELINE_SWEEPING;
	pipeline->table_entries = pipeline->drain.n_folded;
	pipeline->read_err = pipeline->read_err ?: ret;
	pipeline_balance(pipeline);
}

static void step_sweeping(struct pipeline *pipeline)
{
	if (merge_sweep(&pipeline->merge))
		return;
	end_features(pipeline);
	pipeline->phase = PIPELINE_IDLE;
	pipeline_sum_up(pipeline);
	if (pipeline->options.on_interval)
		pipeline->options.on_interval(pipeline->options.user);
	pipeline_note(pipeline);
}

static void step_pipeline(struct pipeline *pipeline)
{
	switch (pipeline->phase) {
	case PIPELINE_SETTLING:
		step_settling(pipeline);
		break;
	case PIPELINE_FEATURES:
		step_features(pipeline);
		break;
	case PIPELINE_READING:
		step_reading(pipeline);
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
static void rest_pipeline(struct pipeline *pipeline)
{
	pipeline->rested_ns =
		clock_boot_ns() +
		max_u64(pipeline->cost_ns, REST_MIN_MS * NSEC_PER_MSEC);
}

static void count_drain(struct pipeline *pipeline)
{
	struct netobs_engine_stats *stats = &pipeline->engine_stats;
	int64_t ns = clock_boot_ns() - pipeline->begun_ns;
	const int64_t shortest_ns = 64000;
	unsigned int class = 0;

	while (class < NETOBS_DRAIN_TIMES - 1 && ns > shortest_ns << class)
		class ++;
	stats->drains++;
	stats->drain_ns += ns;
	stats->drain_cpu_ns += pipeline->cost_ns;
	stats->drains_by_time[class]++;
}

/* No drain follows a final one: read and report what this one had to leave. */
static void begin_another(struct pipeline *pipeline)
{
	bool is_replay = pipeline->clock.kind == CLOCK_PACKET;

	pipeline_begin(pipeline, MERGE_FINAL,
		       is_replay ? pipeline->flip_ns : clock_boot_ns());
}

bool pipeline_step(struct pipeline *pipeline)
{
	int64_t start_ns = clock_thread_ns();

	if (pipeline_is_idle(pipeline))
		return false;
	pipeline->wait_ms = 0;
	logs_read(&pipeline->logs, STEP_SLOTS);
	step_pipeline(pipeline);
	pipeline->cost_ns += clock_thread_ns() - start_ns;
	if (!pipeline_is_idle(pipeline))
		return true;
	count_drain(pipeline);
	rest_pipeline(pipeline);
	if (!pipeline_has_left(pipeline))
		return false;
	begin_another(pipeline);
	return true;
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
