// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* An observer of drops, which has what was dropped read each interval: drop_feed.h. */
#include "base/life.h"
#include "base/options.h"
#include "base/privilege.h"
#include "base/util.h"
#include "drop_feed.h"
#include "filter/filter.h"

#include <errno.h>
#include <netobs/drop.h>
#include <netobs/probe.h>
#include <stdlib.h>
#include <string.h>

enum {
	INTERVAL_DEFAULT_MS = 5000,
	INTERVAL_MIN_MS = 100,
};

struct drops {
	struct life life; /* first */
	struct netobs_drops_opts opts;
	int interval_timer, work_timer;

	struct filter *filter; /* NULL: all */
	struct drop_feed feed; /* zeroes before the start, and after the end */
	bool is_draining;
	bool is_last; /* no further interval begins */
	struct netobs_drops_stats stats;
};

static loop_fn on_interval, on_work;
static const struct life_ops life_ops;

/* ---- Options --------------------------------------------------------------------------- */

static int check_drop_options(const struct netobs_drops_opts *opts,
			      const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_record", "it is not set", !opts->on_record },
		{ "interval_ms", "it is less than 100 ms",
		  opts->interval_ms < INTERVAL_MIN_MS },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}

static int open_drops_loop(struct drops *drops)
{
	struct loop *loop = &drops->life.loop;
	int err = life_open(&drops->life);

	if (!err)
		err = loop_add_timer(loop, CLOCK_BOOTTIME, on_interval, drops,
				     &drops->interval_timer);
	if (!err)
		err = loop_add_timer(loop, CLOCK_BOOTTIME, on_work, drops,
				     &drops->work_timer);
	return err;
}

static int init_drops(struct drops *drops, const struct netobs_drops_opts *opts)
{
	int err = sized_check(opts, sizeof(*opts), &drops->life.log);

	err = err ?: check_drop_options(&drops->opts, &drops->life.log);
	if (!err)
		err = filter_compile(drops->opts.filter, &drops->life.log,
				     &drops->filter);
	err = err ?: filter_check_tuple(drops->filter, &drops->life.log);
	drops->opts.filter = NULL; /* the caller's */
	return err ?: open_drops_loop(drops);
}

int netobs_drops_new(const struct netobs_drops_opts *opts,
		     struct netobs **ret_drops)
{
	struct drops *drops;

	if (!opts || !ret_drops)
		return -EINVAL;
	drops = calloc(1, sizeof(*drops));
	if (!drops)
		return -ENOMEM;
	memcpy(&drops->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	drops->opts.interval_ms = drops->opts.interval_ms ?: INTERVAL_DEFAULT_MS;
	life_init(&drops->life, &life_ops, drops->opts.on_log, drops->opts.user);
	return life_made(&drops->life, "an observer of drops",
			 init_drops(drops, opts), drops->opts.error, ret_drops);
}

static void free_drops(void *object)
{
	struct drops *drops = object;

	drop_feed_close(&drops->feed);
	filter_free(drops->filter);
}

/* ---- Reading --------------------------------------------------------------------------- */

static bool is_match(const struct filter *filter, const struct netobs_drop *drop)
{
	struct filter_tuple tuple = { .src_port = drop->src_port,
				      .dst_port = drop->dst_port,
				      .proto = drop->protocol };

	if (!filter)
		return true;
	if (!(drop->record.has & NETOBS_DROP_HAS_ADDRS))
		return false;
	memcpy(tuple.src, drop->src, sizeof(tuple.src));
	memcpy(tuple.dst, drop->dst, sizeof(tuple.dst));
	if (filter_match_tuple(filter, &tuple))
		return true;
	if (!(drop->record.has & NETOBS_DROP_HAS_ORIG))
		return false;
	memcpy(tuple.src, drop->orig_src, sizeof(tuple.src));
	memcpy(tuple.dst, drop->orig_dst, sizeof(tuple.dst));
	tuple.src_port = drop->orig_src_port;
	tuple.dst_port = drop->orig_dst_port;
	return filter_match_tuple(filter, &tuple);
}

/* Some of what is in no entry of its own may be what the filter matches. */
static void leave_out(struct drops *drops, const struct netobs_drop *drop)
{
	struct netobs_drops_stats *stats = &drops->stats;

	if (drop->record.has & NETOBS_DROP_HAS_REST) {
		stats->lost_packets += drop->packets;
		stats->lost_bytes += drop->bytes;
	} else {
		stats->filtered_packets += drop->packets;
		stats->filtered_bytes += drop->bytes;
	}
}

static void take_drop(const struct netobs_drop *drop, void *ctx)
{
	struct drops *drops = ctx;

	if (!is_match(drops->filter, drop)) {
		leave_out(drops, drop);
		return;
	}
	drops->stats.packets[drop->kind] += drop->packets;
	drops->stats.bytes[drop->kind] += drop->bytes;
	drops->life.delivered++;
	drops->opts.on_record(&drop->record, drops->opts.user);
}

static void lose_drops(const struct count *lost, void *ctx)
{
	struct drops *drops = ctx;

	drops->stats.lost_packets += lost->packets;
	drops->stats.lost_bytes += lost->bytes;
}

static void set_work_timer(const struct drops *drops, uint32_t ms)
{
	loop_set_timer(drops->work_timer,
		       ms ? clock_boot_ns() + ms * NSEC_PER_MSEC : 1);
}

static int on_work(void *ctx, int fd)
{
	struct drops *drops = ctx;
	int r;

	(void)fd;
	if (!drops->is_draining)
		return 0;
	r = drop_feed_step(&drops->feed);
	drops->is_draining = r > 0;
	if (r < 0)
		return r;
	if (!r && drops->opts.on_interval)
		drops->opts.on_interval(drops->opts.user);
	set_work_timer(drops, r ? drop_feed_wait_ms(&drops->feed) : 0);
	return 0;
}

static int begin_drain(struct drops *drops)
{
	int err = drop_feed_begin(&drops->feed);

	if (err)
		return err;
	drops->is_draining = true;
	set_work_timer(drops, DROP_FEED_WAIT_MS);
	return 0;
}

/* A generation that is still being read is not a reason to hurry: the tables have room for both. */
static int on_interval(void *ctx, int fd)
{
	struct drops *drops = ctx;

	(void)fd;
	if (drops->life.state != LIFE_RUNNING || drops->is_draining)
		return 0;
	return begin_drain(drops);
}

int netobs_drops_interval_set(struct netobs *netobs, uint32_t interval_ms)
{
	struct drops *drops = life_as(netobs, &life_ops);

	interval_ms = interval_ms ?: INTERVAL_DEFAULT_MS;
	if (!drops)
		return -EINVAL;
	log_expect_error(&drops->life.log);
	if (interval_ms < INTERVAL_MIN_MS) {
		log_error(&drops->life.log,
			  "interval_ms: it is less than %d ms", INTERVAL_MIN_MS);
		return -EINVAL;
	}
	drops->opts.interval_ms = interval_ms;
	if (drops->life.state == LIFE_RUNNING)
		loop_repeat_timer(drops->interval_timer, interval_ms);
	return 0;
}

/* ---- Start and stop -------------------------------------------------------------------- */

static int start_drops(void *owner)
{
	struct drops *drops = owner;
	const bool no_reasons =
		drops->opts.disable_features >> NETOBS_FEATURE_DROP_REASONS & 1;
	int err;

	drops->feed = (struct drop_feed){ .take = take_drop,
					  .lose = lose_drops,
					  .ctx = drops };
	err = drop_feed_open(&drops->feed, no_reasons, &drops->life.log);
	if (err)
		return err;
	drops->stats.has_reasons = drops->feed.programs.has_reasons;
	drops->life.state = LIFE_RUNNING;
	loop_repeat_timer(drops->interval_timer, drops->opts.interval_ms);
	return 0;
}

static void fill_missed(const struct drops *drops,
			struct netobs_drops_stats *stats)
{
	const struct drop_programs *programs = &drops->feed.programs;

	if (!programs->state)
		return;
	stats->missed = drop_programs_missed(programs);
	stats->others = programs->state->others;
}

static void stop_drops(void *owner)
{
	struct drops *drops = owner;

	drop_programs_detach(&drops->feed.programs);
	set_work_timer(drops, 0);
}

/* Wait for the drain that is under way, and then drain the rest. */
static int step_drops(void *owner)
{
	struct drops *drops = owner;

	if (drops->life.state != LIFE_STOPPING || drops->is_draining)
		return 0;
	if (!drops->is_last) {
		drops->is_last = true;
		return begin_drain(drops);
	}
	fill_missed(drops, &drops->stats);
	drop_feed_close(&drops->feed);
	drops->life.state = LIFE_STOPPED;
	set_work_timer(drops, 0);
	return 0;
}

static const struct life_ops life_ops = {
	.start = start_drops,
	.stop = stop_drops,
	.step = step_drops,
	.free = free_drops,
	.privileges = PRIVILEGE_PROGRAMS,
};

int netobs_drops_stats_get(const struct netobs *netobs,
			   struct netobs_drops_stats *ret_stats)
{
	const struct drops *drops = life_as(netobs, &life_ops);
	struct netobs_drops_stats stats;

	if (!drops || !ret_stats)
		return -EINVAL;
	stats = drops->stats;
	fill_missed(drops, &stats);
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
