// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Capture files through the BPF programs: the clock is the file's. e2e.replay compares files of all kinds. */
#include "lib_capture.h"
#include "lib_test.h"
#include "lib_witness.h"
#include "prog.h"

enum { T0 = 1600000000 };

struct fixture {
	struct capture capture;
	struct witness witness;
	struct netobs_opts opts;
	struct netobs *ctx;
};

static int replay_file(struct netobs *ctx, const char *path)
{
	return netobs_replay_files(ctx, &path, 1);
}

static void create(struct fixture *f)
{
	NETOBS_OPTS(netobs_opts, opts);

	f->opts = opts;
	witness_listen(&f->witness, &f->opts);
	capture_create(&f->capture);
	capture_start(&f->capture, CAPTURE_ETHERNET);
}

static void add(struct fixture *f, uint32_t flow, uint32_t seconds, uint32_t us)
{
	uint8_t frame[64];
	uint32_t len = prog_flow_frame(flow, frame);

	capture_packet(&f->capture, T0 + seconds, us, frame, len, len);
}

static int replay(struct fixture *f)
{
	assert_int_equal(netobs_new(&f->opts, &f->ctx), 0);
	return replay_file(f->ctx, f->capture.path);
}

static void done(struct fixture *f)
{
	netobs_free(f->ctx);
	capture_remove(&f->capture);
	witness_clear(&f->witness);
}

static struct netobs_stats stats_of(const struct fixture *f)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	return stats;
}

TEST_FIXTURE(struct fixture, create, done)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

/* Drains fall where the file's clock says, and nothing is counted once less. */
CASE(intervals_pass_on_the_files_clock)
{
	f->opts.interval_ms = 1000;
	for (uint32_t i = 0; i < 10; i++)
		add(f, 1, i / 2, i % 2 * 500000);
	add(f, 1, 1000, 0); /* empty intervals in between bring nothing */
	assert_int_equal(replay(f), 6);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(f->witness.flows[i].flow.packets, 2);
		assert_int_equal(f->witness.flows[i].flow.start_ns,
				 (T0 + i) * NSEC_PER_SEC);
	}
	assert_int_equal(f->witness.flows[5].flow.packets, 1);
	assert_int_equal(f->witness.packets, 11);
}

CASE(idle_flows_end_in_gaps_of_the_file)
{
	f->opts.interval_ms = 1000;
	f->opts.active_timeout_ms = 600000;
	f->opts.idle_timeout_ms = 15000;
	add(f, 1, 0, 0);
	add(f, 1, 1, 0);
	add(f, 1, 100, 0);
	assert_int_equal(replay(f), 2);
	assert_int_equal(f->witness.flows[0].flow.packets, 2);
	assert_int_equal(f->witness.flows[0].flow.end_reason, NETOBS_END_IDLE);
	assert_int_equal(f->witness.flows[0].flow.end_ns,
			 (T0 + 1) * NSEC_PER_SEC);
	assert_int_equal(f->witness.flows[1].flow.packets, 1);
	assert_int_equal(f->witness.flows[1].flow.end_reason, NETOBS_END_FORCED);
}

CASE(packets_out_of_order_stretch_the_flow)
{
	add(f, 1, 3, 0);
	add(f, 1, 1, 0);
	add(f, 1, 2, 0);
	assert_int_equal(replay(f), 1);
	assert_int_equal(f->witness.flows[0].flow.packets, 3);
	assert_int_equal(f->witness.flows[0].flow.start_ns,
			 (T0 + 1) * NSEC_PER_SEC);
	assert_int_equal(f->witness.flows[0].flow.end_ns,
			 (T0 + 3) * NSEC_PER_SEC);
}

CASE(many_flows_come_through)
{
	enum { FLOWS = 60000 }; /* more than a log takes */

	f->opts.max_flows = 2000; /* drained early, not lost */
	for (uint32_t i = 0; i < FLOWS; i++)
		add(f, i, 0, i);
	assert_true(replay(f) >= FLOWS);
	assert_int_equal(f->witness.packets, FLOWS);
	assert_int_equal(f->witness.errors, 0);
	assert_true(stats_of(f).early_drains > 0);
}

static struct netobs *stopped_by_its_flows;

static void stop_at_a_flow(const struct netobs_record *record, void *user)
{
	witness_on_flow(record, user);
	netobs_stop(stopped_by_its_flows);
}

CASE(replay_can_be_stopped)
{
	f->opts.interval_ms = 1000;
	f->opts.on_record = stop_at_a_flow;
	for (uint32_t i = 0; i < 100; i++)
		add(f, 1, i, 0);
	assert_int_equal(netobs_new(&f->opts, &f->ctx), 0);
	stopped_by_its_flows = f->ctx;
	assert_int_equal(replay_file(f->ctx, f->capture.path), -ECANCELED);
	assert_in_range(f->witness.packets, 1, 3);
}

CASE(context_replays_once)
{
	add(f, 1, 0, 0);
	assert_int_equal(replay(f), 1);
	assert_int_equal(replay_file(f->ctx, f->capture.path), -EINVAL);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	assert_int_equal(f->witness.n_flows, 1);
}
