// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A drain from end to end: what programs count is reported, and to the packet. */
#include "lib_lab.h"
#include "lib_test.h"
#include "lib_wait.h"
#include "lib_witness.h"
#include "lib_world.h"
#include "prog.h"
#include "flows/pipeline.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/resource.h>

/* Few, so that logs fill up as well; 64 KiB, as pages of arm64 may have. */
enum { LOG_SLOTS = 1024 };

static const struct rate all_packets;

/* One interface, every drain reports all. */
struct fixture {
	struct netobs_opts opts;
	struct witness witness;
	struct log log;
	struct host host;
	struct pipeline pipeline;
	struct programs programs;
	bool is_open;
};

static void open_pipeline(struct fixture *f,
			  const struct pipeline_options *options)
{
	assert_int_equal(pipeline_open(&f->pipeline, options, &f->log), 0);
	assert_int_equal(pipeline_init(&f->pipeline, &f->host), 0);
	assert_int_equal(store_load_programs(&f->pipeline.store, NULL,
					     &all_packets, 0, LINK_ETHERNET,
					     &f->programs),
			 0);
}

static int set_up(void **state)
{
	static struct fixture f;

	*state = &f;
	return 0;
}

static void done(struct fixture *f)
{
	if (!f->is_open)
		return;
	programs_close(&f->programs);
	pipeline_done(&f->pipeline);
	host_done(&f->host);
	witness_clear(&f->witness);
	f->is_open = false;
}

static int tear_down(void **state)
{
	done(*state);
	return 0;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

/* What was open before is closed. */
static void open_lanes(struct fixture *f, uint32_t max_flows, uint32_t lanes)
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 0 } };
	const struct pipeline_options options = {
		.store = {
			.opts = &f->opts,
			.lanes = lanes,
			.log_slots = LOG_SLOTS,
		},
		.merge = {
			.single_point = true,
			.interval_ns = NSEC_PER_SEC,
			.idle_timeout_ns = 3600 * NSEC_PER_SEC,
			.max_flows = 1 << 20,
			.on_record = witness_on_flow,
			.user = &f->witness,
		},
		.on_interval = witness_on_interval,
		.user = &f->witness,
	};

	done(f);
	memset(f, 0, sizeof(*f));
	f->is_open = true;
	f->opts.max_flows = max_flows;
	assert_int_equal(prog_pin(0), 0); /* its flows share L1 */
	f->log = witness_log(&f->witness);
	world_build(&f->host, 1, links);
	open_pipeline(f, &options);
}

static void open_with(struct fixture *f, uint32_t max_flows)
{
	open_lanes(f, max_flows, 0);
}

static void begin(struct fixture *f, enum merge_mode mode)
{
	pipeline_begin(&f->pipeline, mode, clock_boot_ns());
}

static void drain(struct fixture *f, enum merge_mode mode)
{
	begin(f, mode);
	pipeline_finish(&f->pipeline);
}

/* As a context does it when a log fills up. */
static void relieve(struct fixture *f)
{
	if (logs_are_filling(&f->pipeline.logs))
		assert_true(pipeline_relieve_now(&f->pipeline));
}

static void inject_flow(const struct fixture *f, uint32_t flow, uint32_t packets)
{
	uint8_t frame[64];
	const uint32_t len = prog_flow_frame(flow, frame);
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame,
		    .data_size_in = len, .repeat = packets);

	assert_int_equal(bpf_prog_test_run_opts(f->programs.fds[0], &run), 0);
}

/* @packets of each flow below @n. */
static void inject_flows(const struct fixture *f, uint32_t n, uint32_t packets)
{
	for (uint32_t flow = 0; flow < n; flow++)
		inject_flow(f, flow, packets);
}

/* A packet of each of @n flows. */
static void inject_relieved(struct fixture *f, uint32_t first, uint32_t n)
{
	for (uint32_t flow = first; flow < first + n; flow++) {
		inject_flow(f, flow, 1);
		relieve(f);
	}
}

static uint64_t bytes_of(const struct fixture *f)
{
	return store_bytes(&f->pipeline.store) + fold_bytes(&f->pipeline.fold);
}

static struct netobs_stats stats_of(const struct fixture *f)
{
	struct netobs_stats stats = { .interfaces = 0 };

	pipeline_stats(&f->pipeline, &stats);
	return stats;
}

static uint64_t lost_packets(const struct netobs_stats *stats)
{
	uint64_t packets = 0;

	for (int i = 0; i < NETOBS_LOST_REASONS; i++)
		packets += stats->lost[i].packets;
	return packets;
}

/* All of @packets was seen; @expected_lost: whether some may be missing. */
static void assert_conserved(const struct fixture *f, uint64_t packets,
			     bool may_lose)
{
	struct netobs_stats stats = stats_of(f);
	uint64_t lost = lost_packets(&stats);

	assert_int_equal(stats.observed.packets, packets);
	assert_int_equal(stats.seen.packets, packets);
	assert_int_equal(stats.exported.packets + lost, packets);
	assert_int_equal(stats.exported.bytes,
			 stats.exported.packets * PROG_FLOW_BYTES);
	assert_int_equal(f->witness.packets, stats.exported.packets);
	assert_int_equal(f->witness.bytes, stats.exported.bytes);
	if (!may_lose)
		assert_int_equal(lost, 0);
	if (!may_lose)
		assert_int_equal(f->witness.errors, 0);
}

CASE(drain_reports_one_flow_exactly)
{
	int64_t before_ns, after_ns;

	open_with(f, 1000);
	before_ns = clock_boot_ns();
	inject_flow(f, 7, 1000);
	after_ns = clock_boot_ns();
	drain(f, MERGE_FINAL);
	assert_int_equal(f->witness.n_flows, 1);
	assert_int_equal(f->witness.n_intervals, 1);
	assert_int_equal(f->witness.flows[0].flow.packets, 1000);
	assert_int_equal(f->witness.flows[0].flow.src[15], 7);
	assert_true(f->witness.flows[0].flow.start_ns >=
		    clock_to_wall(&f->pipeline.clock, before_ns));
	assert_true(f->witness.flows[0].flow.end_ns <=
		    clock_to_wall(&f->pipeline.clock, after_ns));
	assert_conserved(f, 1000, false);
}

CASE(drains_alternate_and_lose_nothing)
{
	enum { ROUNDS = 10, FLOWS = 500 };

	open_with(f, 10000);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		inject_flows(f, FLOWS, 2);
		drain(f, i % 3 ? MERGE_INTERVAL : MERGE_EARLY);
		assert_int_equal(f->witness.n_flows, i * FLOWS);
		assert_int_equal(f->witness.n_intervals, i);
		assert_conserved(f, i * FLOWS * 2, false);
	}
	assert_int_equal(stats_of(f).drains, ROUNDS);
	assert_int_equal(stats_of(f).early_drains, ROUNDS / 3);
	assert_int_equal(stats_of(f).flows, ROUNDS * FLOWS);
}

CASE(drain_of_many_flows_loses_nothing)
{
	enum { FLOWS = 30000 };

	open_with(f, 1 << 17);
	for (uint32_t round = 0; round < 2; round++)
		inject_relieved(f, 0, FLOWS);
	drain(f, MERGE_INTERVAL);
	assert_int_equal(f->witness.n_flows, FLOWS);
	assert_true(stats_of(f).table_entries > FLOWS / 2);
	assert_conserved(f, 2 * FLOWS, false);
}

/* Memory grows while flows come, and is given back when they do not. */
CASE(memory_follows_the_load)
{
	const uint32_t flows = lab_shrink() > 1 ? 50000 : 200000;
	uint32_t drains = 0;
	uint64_t idle, most;

	open_with(f, 1 << 20);
	idle = bytes_of(f);
	inject_relieved(f, 0, flows);
	most = bytes_of(f);
	assert_true(most - idle > flows * sizeof(struct short_entry));
	assert_true(most - idle < 2 * flows * sizeof(struct short_entry));
	drain(f, MERGE_INTERVAL);
	assert_conserved(f, flows, false);
	assert_int_equal(stats_of(f).spilled.packets, 0);

	/* The kernel replaces tables in its own time. */
	await_by(bytes_of(f) <= idle * 4 / 3, {
		inject_flow(f, 1, 1);
		drain(f, MERGE_INTERVAL);
		usleep(10000);
		drains++;
	});
	assert_conserved(f, flows + drains, false);
}

/* Once more, with @room bytes more than it takes at first; returns the limit. */
static uint64_t limit_memory(struct fixture *f, uint64_t room)
{
	struct pipeline_options options = f->pipeline.options;

	f->opts.max_memory = bytes_of(f) + room;
	pipeline_done(&f->pipeline);
	programs_close(&f->programs);
	open_pipeline(f, &options);
	return f->opts.max_memory;
}

CASE(memory_stays_below_its_cap)
{
	const uint32_t flows = lab_shrink() > 1 ? 100000 : 200000;
	uint64_t cap;

	open_with(f, 1 << 20);
	cap = limit_memory(f, 10 << 20);
	for (uint32_t flow = 0; flow < flows; flow++) {
		inject_flow(f, flow, 1);
		if (logs_are_filling(&f->pipeline.logs) &&
		    !pipeline_relieve_now(&f->pipeline))
			drain(f, MERGE_EARLY);
		assert_true(bytes_of(f) <= cap);
	}
	drain(f, MERGE_FINAL);
	assert_true(stats_of(f).early_drains > 0);
	assert_conserved(f, flows, false);
}

/* Nothing reads the logs, so packets overflow, which the reader learns at the drain. */
CASE(late_reader_loses_nothing)
{
	enum { FLOWS = 20000, MORE = 3000 };

	open_with(f, 1 << 20);
	for (uint32_t round = 0; round < 2; round++)
		inject_flows(f, FLOWS, 1);
	drain(f, MERGE_INTERVAL);
	assert_true(stats_of(f).spilled.packets > FLOWS);
	assert_int_equal(f->witness.n_flows, FLOWS);
	assert_conserved(f, 2 * FLOWS, false);

	inject_flows(f, MORE, 1);
	drain(f, MERGE_FINAL);
	assert_int_equal(f->witness.n_flows, FLOWS + MORE);
	assert_conserved(f, 2 * FLOWS + MORE, false);
}

/*
 * While a flip settles the logs get records of the new generation behind those of the
 * old one: these to be reported now, those with the next drain.
 */
CASE(records_wait_for_the_drain_of_their_generation)
{
	enum { FLOWS = 8000, MORE = 7000 };

	open_with(f, 1 << 20);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t records = f->witness.n_flows;

		inject_relieved(f, 0, FLOWS);
		begin(f, i % 2 ? MERGE_EARLY : MERGE_INTERVAL);
		assert_true(pipeline_is_settling(&f->pipeline));
		inject_relieved(f, FLOWS, MORE);
		pipeline_finish(&f->pipeline);
		assert_int_equal(f->witness.errors, 0); /* the books balance */
		assert_int_equal(f->witness.n_flows - records,
				 i ? FLOWS + MORE : FLOWS);
	}
	drain(f, MERGE_FINAL);
	assert_conserved(f, 4ULL * (FLOWS + MORE), false);
}

/* A cap on flows: the rest stays in the logs, and in the overflow table, until a drain. */
CASE(flows_beyond_the_cap_ask_for_a_drain)
{
	enum { FLOWS = 8000 };

	open_with(f, 100);
	inject_flows(f, FLOWS, 1);
	assert_int_equal(pipeline_relieve(&f->pipeline), PIPELINE_BEHIND);
	usleep(2000); /* until records may be read */
	assert_int_equal(pipeline_relieve(&f->pipeline), PIPELINE_FULL);
	assert_int_equal(fold_count(&f->pipeline.fold, 0), 100);
	begin(f, MERGE_EARLY);
	inject_flows(f, FLOWS, 3);
	pipeline_finish(&f->pipeline);
	assert_conserved(f, FLOWS, false);
	assert_int_equal(f->witness.n_flows, FLOWS);
	drain(f, MERGE_FINAL);
	assert_conserved(f, 4 * FLOWS, false);
	assert_int_equal(f->witness.n_flows, 2 * FLOWS);
}

/* A packet of each flow, few enough in a tick that each looks into L1: see bypass.h. */
static void inject_slowly(struct fixture *f, uint32_t flows)
{
	for (uint32_t flow = 0; flow < flows; flow++) {
		inject_flow(f, flow, 1);
		if (flow % 100 == 99)
			usleep(10000);
	}
}

/* Drain, without memory to map a log with. */
static void drain_without_logs(struct fixture *f, enum merge_mode mode)
{
	struct rlimit limit, none;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	begin(f, mode);
	do {
		bool is_reading = f->pipeline.phase == PIPELINE_READING;

		usleep(1000 * pipeline_wait_ms(&f->pipeline));
		assert_int_equal(
			setrlimit(RLIMIT_AS, is_reading ? &none : &limit), 0);
		ret = pipeline_step(&f->pipeline);
		assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	} while (ret);
}

CASE(logs_that_cannot_be_mapped_are_read_later)
{
	enum { FLOWS = 1500 }; /* some of them collide in L1: no log fills up */
	struct netobs_stats stats;

	open_with(f, 1 << 20);
	for (uint32_t round = 1; round <= 2; round++) {
		inject_slowly(f, FLOWS);
		drain_without_logs(f, MERGE_INTERVAL);
		stats = stats_of(f);
		assert_int_equal(f->witness.errors, round);
		assert_true(witness_read(&f->witness,
					 "cannot read the flow tables"));
		assert_in_range(stats.pending.packets, 1, round * FLOWS - 1);
		assert_int_equal(lost_packets(&stats), 0);
		assert_int_equal(stats.seen.packets, round * FLOWS);
		assert_int_equal(stats.exported.packets + stats.pending.packets,
				 round * FLOWS);
	}
	for (uint32_t round = 0; round < 4; round++)
		drain(f, MERGE_INTERVAL);
	drain(f, MERGE_FINAL);
	assert_int_equal(f->witness.errors, 2);
	stats = stats_of(f);
	assert_int_equal(stats.exported.packets, 2 * FLOWS);
	assert_int_equal(stats.pending.packets + lost_packets(&stats), 0);
}

/* One drain is of the next generation, and none comes after the last. */
CASE(last_drain_reads_what_the_one_before_has_left)
{
	enum { FLOWS = 1500 };

	for (int is_leaving = 0; is_leaving <= 1; is_leaving++) {
		open_with(f, 1 << 20);
		inject_slowly(f, FLOWS);
		drain_without_logs(f, MERGE_INTERVAL);
		assert_in_range(stats_of(f).pending.packets, 1, FLOWS - 1);
		inject_slowly(f, FLOWS);
		if (is_leaving)
			pipeline_leave(&f->pipeline);
		drain(f, MERGE_FINAL);
		assert_int_equal(f->witness.errors, 1);
		assert_int_equal(stats_of(f).exported.packets, 2 * FLOWS);
		assert_conserved(f, 2 * FLOWS, true);
	}
}

/* Nor do records without room hide the records behind them. */
CASE(last_drain_reads_what_is_behind_refused_records)
{
	enum { FLOWS = 1500, MAX_FLOWS = 20 };

	open_with(f, MAX_FLOWS);
	inject_slowly(f, FLOWS);
	drain_without_logs(f, MERGE_INTERVAL);
	assert_true(stats_of(f).pending.packets > MAX_FLOWS);
	inject_slowly(f, FLOWS);
	drain(f, MERGE_FINAL);
	assert_false(witness_read(&f->witness, "not accounted for"));
	assert_int_equal(stats_of(f).exported.packets, 2 * FLOWS);
	assert_conserved(f, 2 * FLOWS, true);
}

/* It takes the counts of packets that this process has not seen. */
CASE(next_process_counts_what_was_left_and_no_more)
{
	enum { FLOWS = 1500 };
	struct pinned_state pinned_state = { .magic = 0 };
	struct pinned pinned = PINNED_NONE;
	struct netobs_stats stats;

	open_with(f, 1 << 20);
	inject_slowly(f, FLOWS);
	pinned.state = &pinned_state;
	f->pipeline.store.options.pinned = &pinned;
	pipeline_leave(&f->pipeline);
	drain_without_logs(f, MERGE_FINAL);
	f->pipeline.store.options.pinned = NULL;
	stats = stats_of(f);
	assert_in_range(stats.pending.packets, 1, FLOWS - 1);
	assert_int_equal(pinned_state.seen_drained.packets,
			 stats.exported.packets);
	assert_int_equal(pinned_state.seen_drained.bytes, stats.exported.bytes);
}

CASE(logs_that_cannot_be_mapped_in_the_last_drain_are_lost)
{
	enum { FLOWS = 1500 }; /* some of them collide in L1: no log fills up */
	struct netobs_stats stats;

	open_with(f, 1 << 20);
	inject_slowly(f, FLOWS);
	drain_without_logs(f, MERGE_FINAL);
	stats = stats_of(f);
	assert_in_range(stats.lost[NETOBS_LOST_MEMORY].packets, 1, FLOWS - 1);
	assert_int_equal(stats.lost[NETOBS_LOST_MEMORY].bytes,
			 stats.lost[NETOBS_LOST_MEMORY].packets * PROG_FLOW_BYTES);
	assert_int_equal(stats.pending.packets, 0);
	assert_conserved(f, FLOWS, true);
}

/*
 * Programs that interrupt one another, as on PREEMPT_RT: one that finds the states
 * before its own in use takes the next.
 */
CASE(interrupted_programs_do_not_share_a_state)
{
	open_lanes(f, 1000, LANES_MAX);
	for (uint32_t used = 0; used < LANES_MAX; used++) {
		for (uint32_t cpu = 0; cpu < f->pipeline.store.n_cpus; cpu++)
			f->pipeline.store.cpus[cpu].busy = cpu % LANES_MAX < used;
		inject_flow(f, 1, 10);
		inject_flow(f, 2 + used, 10);
		for (uint32_t cpu = 0; cpu < f->pipeline.store.n_cpus; cpu++)
			assert_int_equal(f->pipeline.store.cpus[cpu].entered,
					 f->pipeline.store.cpus[cpu].exited);
	}
	drain(f, MERGE_INTERVAL);
	assert_int_equal(f->witness.n_flows, 1 + LANES_MAX);
	assert_conserved(f, 20 * LANES_MAX, false);

	/* There are no more of them: further packets are counted as lost. */
	for (uint32_t cpu = 0; cpu < f->pipeline.store.n_cpus; cpu++)
		f->pipeline.store.cpus[cpu].busy = 1;
	inject_flow(f, 1, 7);
	drain(f, MERGE_FINAL);
	assert_int_equal(stats_of(f).lost[NETOBS_LOST_KERNEL_MEMORY].packets, 7);
	assert_conserved(f, 20 * LANES_MAX + 7, true);
	assert_int_equal(f->witness.errors, 0);
}

CASE(flows_beyond_every_room_are_counted_as_lost)
{
	enum { FLOWS = 50000 }; /* more than L1, log and overflow table take */
	struct netobs_stats stats;

	open_with(f, 1000);
	limit_memory(f, 10 << 20);
	inject_flows(f, FLOWS, 2);
	drain(f, MERGE_FINAL);
	stats = stats_of(f);
	assert_true(stats.lost[NETOBS_LOST_TABLE_FULL].packets > 0);
	assert_int_equal(stats.lost[NETOBS_LOST_TABLE_FULL].bytes,
			 stats.lost[NETOBS_LOST_TABLE_FULL].packets *
				 PROG_FLOW_BYTES);
	assert_conserved(f, 2 * FLOWS, true);
	assert_int_equal(f->witness.errors, 0); /* the books balance */
}

CASE(packets_that_are_not_accounted_for_are_an_error)
{
	open_with(f, 1000);
	inject_flow(f, 1, 10);
	f->pipeline.store.cpus[0].counters[0].seen.packets++;
	drain(f, MERGE_FINAL);
	assert_int_equal(f->witness.errors, 1);
	assert_true(witness_read(&f->witness, "not accounted for"));
}

static void note_stamp(uint32_t generation, int64_t stamp_ns, void *ctx)
{
	(void)generation;
	*(int64_t *)ctx = stamp_ns;
}

/* In a time namespace the programs' clock is another one. */
CASE(features_have_the_time_of_a_flip_by_the_clock_of_entries)
{
	const int64_t offset_ns = 1000 * NSEC_PER_SEC;
	int64_t stamp_ns = 0;
	const struct flow_extra extra = { .before_flip = note_stamp,
					  .ctx = &stamp_ns };

	open_with(f, 1000);
	f->pipeline.options.merge.extras = (struct flow_extras){ &extra, 1 };
	f->pipeline.clock.namespace_offset = offset_ns;
	drain(f, MERGE_INTERVAL);
	assert_int_equal(stamp_ns, f->pipeline.flip_ns - offset_ns);
	f->pipeline.options.merge.extras.n = 0;
}

CASE(pipeline_may_be_given_up_at_any_step)
{
	for (int steps = 0; steps<12; steps += lab_shrink()> 1 ? 3 : 1) {
		open_with(f, 1000);
		inject_flows(f, 6000, 1);
		begin(f, MERGE_INTERVAL);
		for (int i = 0; i < steps; i++)
			pipeline_step(&f->pipeline);
	}
}
