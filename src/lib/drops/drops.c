// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * An observer of drops. Each interval, the programs are switched to another generation of entries, and
 * once those that may still write to the old one have ended, it is read, in slices of some milliseconds.
 */
#include "base/clock.h"
#include "base/life.h"
#include "base/privilege.h"
#include "base/sized.h"
#include "base/util.h"
#include "drop_fill.h"
#include "engine/drop_programs.h"
#include "engine/map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netobs/drop.h>
#include <netobs/probe.h>
#include <stdlib.h>
#include <string.h>

enum {
	INTERVAL_DEFAULT_MS = 5000,
	INTERVAL_MIN_MS = 100,
	GRACE_MS = 2, /* between looks whether programs have ended */
	SLICE_MS = 4, /* of a call, for entries */
	BATCH = 256,  /* entries that the kernel copies at once */
};

/* What a generation waits for. */
enum drain_state { DRAIN_NONE, DRAIN_GRACE, DRAIN_READ };

struct netobs_drops {
	struct netobs_drops_opts opts;
	struct life life;
	int interval_timer, work_timer;

	struct drop_programs programs;
	struct drop_names names;
	struct clock clock;
	struct drop_source source;
	struct netobs_drops_stats stats;

	enum drain_state state;
	uint32_t generation; /* that is being drained */
	int64_t drained_ns;  /* when it ended, since 1970 */
	struct map_grace *grace;
	int map_fd;	 /* that is being read */
	uint32_t cursor; /* of the kernel, in that map */
	bool has_cursor;
	bool is_last; /* nothing is attached any more */
	struct drop_key keys[BATCH];
	struct drop_value values[BATCH];
};

static loop_fn on_interval, on_work;
static const struct life_ops life_ops;

/* ---- Options --------------------------------------------------------------------------- */

static int check_drop_options(const struct netobs_drops_opts *opts,
			      const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_drop", "it is not set", !opts->on_drop },
		{ "interval_ms", "it is less than 100 ms",
		  opts->interval_ms < INTERVAL_MIN_MS },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}

static int open_drops_loop(struct netobs_drops *drops)
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

static int init_drops(struct netobs_drops *drops,
		      const struct netobs_drops_opts *opts)
{
	int err = sized_check(opts, sizeof(*opts), &drops->life.log);

	err = err ?: check_drop_options(&drops->opts, &drops->life.log);
	return err ?: open_drops_loop(drops);
}

int netobs_drops_new(const struct netobs_drops_opts *opts,
		     struct netobs_drops **ret_drops)
{
	struct netobs_drops *drops;
	int err;

	if (!opts || !ret_drops)
		return -EINVAL;
	drops = calloc(1, sizeof(*drops));
	if (!drops)
		return -ENOMEM;
	memcpy(&drops->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	drops->opts.interval_ms = drops->opts.interval_ms ?: INTERVAL_DEFAULT_MS;
	life_init(&drops->life, &life_ops, drops, drops->opts.on_log,
		  drops->opts.user);
	err = log_keep_error(&drops->life.log, "cannot make an observer of drops",
			     init_drops(drops, opts));
	if (err) {
		log_copy_error(&drops->life.log, drops->opts.error);
		netobs_drops_free(drops);
		return err;
	}
	drops->opts.error = NULL;
	*ret_drops = drops;
	return 0;
}

void netobs_drops_free(struct netobs_drops *drops)
{
	if (!drops)
		return;
	map_grace_abandon(drops->grace);
	drop_programs_close(&drops->programs);
	drop_names_close(&drops->names);
	life_close(&drops->life);
	free(drops);
}

/* ---- Reading --------------------------------------------------------------------------- */

static void deliver_drop(struct netobs_drops *drops, const struct drop_key *key,
			 const struct drop_value *value)
{
	struct netobs_drop drop;

	drop_fill(&drops->source, key, value, drops->drained_ns, &drop);
	drops->stats.packets[drop.kind] += drop.packets;
	drops->stats.bytes[drop.kind] += drop.bytes;
	drops->life.delivered++;
	drops->opts.on_drop(&drop, drops->opts.user);
}

/* Deliver those of the old generation. The others are being counted. */
static void take_batch(struct netobs_drops *drops, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (drops->keys[i].generation != drops->generation)
			continue;
		bpf_map_delete_elem(drops->map_fd, &drops->keys[i]);
		deliver_drop(drops, &drops->keys[i], &drops->values[i]);
	}
}

/* @return 1: there may be more; 0: those were all; < 0 */
static int read_batch(struct netobs_drops *drops)
{
	uint32_t n = BATCH, *from = drops->has_cursor ? &drops->cursor : NULL;
	uint32_t next;
	int err = bpf_map_lookup_batch(drops->map_fd, from, &next, drops->keys,
				       drops->values, &n, NULL);

	if (err && errno != ENOENT)
		return -errno;
	drops->cursor = next;
	drops->has_cursor = true;
	take_batch(drops, n);
	return !err;
}

static void read_lost(struct netobs_drops *drops)
{
	struct count *lost = &drops->programs.state->lost[drops->generation];

	drops->stats.lost_packets += lost->packets;
	drops->stats.lost_bytes += lost->bytes;
	*lost = (struct count){ 0 };
}

static void end_drain(struct netobs_drops *drops)
{
	read_lost(drops);
	drops->state = DRAIN_NONE;
	if (drops->opts.on_interval)
		drops->opts.on_interval(drops->opts.user);
}

/* Both maps, one after the other; @return 0: later calls go on, or all was read; < 0 */
static int read_generation(struct netobs_drops *drops)
{
	const int64_t end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	int r;

	while (clock_boot_ns() < end_ns) {
		r = read_batch(drops);
		if (r < 0)
			return r;
		if (r)
			continue;
		drops->has_cursor = false;
		if (drops->map_fd == drops->programs.rest_fd) {
			end_drain(drops);
			return 0;
		}
		drops->map_fd = drops->programs.rest_fd;
	}
	return 0;
}

static void set_work_timer(const struct netobs_drops *drops, uint32_t ms)
{
	loop_set_timer(drops->work_timer,
		       ms ? clock_boot_ns() + ms * NSEC_PER_MSEC : 1);
}

static int await_grace(struct netobs_drops *drops)
{
	int err = map_grace_result(&drops->grace);

	if (err == -EAGAIN) {
		set_work_timer(drops, GRACE_MS);
		return 0;
	}
	if (err)
		return err;
	drops->state = DRAIN_READ;
	drops->map_fd = drops->programs.drops_fd;
	drops->has_cursor = false;
	return 0;
}

static int on_work(void *ctx, int fd)
{
	struct netobs_drops *drops = ctx;
	int err = 0;

	(void)fd;
	if (drops->state == DRAIN_GRACE)
		err = await_grace(drops);
	if (!err && drops->state == DRAIN_READ) {
		err = read_generation(drops);
		set_work_timer(drops, 0);
	}
	return err;
}

static int begin_drain(struct netobs_drops *drops)
{
	uint32_t *generation = &drops->programs.state->generation;
	int err;

	clock_calibrate(&drops->clock);
	drops->generation = *generation;
	__atomic_store_n(generation, *generation ^ 1, __ATOMIC_SEQ_CST);
	drops->drained_ns = clock_to_wall(
		&drops->clock, clock_to_stamp(&drops->clock, clock_boot_ns()));
	err = map_grace_begin(&drops->grace);
	if (err)
		return err;
	drops->state = DRAIN_GRACE;
	set_work_timer(drops, GRACE_MS);
	return 0;
}

/* A generation that is still being read is not a reason to hurry: the tables have room for both. */
static int on_interval(void *ctx, int fd)
{
	struct netobs_drops *drops = ctx;

	(void)fd;
	if (drops->life.state != LIFE_RUNNING || drops->state != DRAIN_NONE)
		return 0;
	return begin_drain(drops);
}

int netobs_drops_interval_set(struct netobs_drops *drops, uint32_t interval_ms)
{
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
	struct netobs_drops *drops = owner;
	const bool no_reasons =
		drops->opts.disable_features >> NETOBS_FEATURE_DROP_REASONS & 1;
	int err = drop_programs_open(&drops->programs, no_reasons,
				     &drops->life.log);

	if (err)
		return err;
	clock_init(&drops->clock, CLOCK_PRECISE);
	drop_names_open(&drops->names, drops->programs.has_reasons,
			&drops->life.log);
	drops->source = (struct drop_source){ &drops->clock, &drops->names,
					      drops->programs.functions_fd };
	drops->stats.has_reasons = drops->programs.has_reasons;
	if (!drops->programs.has_reasons)
		log_warning(
			&drops->life.log,
			"the kernel states no reasons of drops (drop_reasons): functions are all that is known");
	drops->life.state = LIFE_RUNNING;
	loop_repeat_timer(drops->interval_timer, drops->opts.interval_ms);
	return 0;
}

static void keep_missed(struct netobs_drops *drops)
{
	drops->stats.missed = drop_programs_missed(&drops->programs);
	drops->stats.others = drops->programs.state->others;
}

static void stop_drops(void *owner)
{
	struct netobs_drops *drops = owner;

	drop_programs_detach(&drops->programs);
	set_work_timer(drops, 0);
}

/* What is being drained, and then the rest. */
static int step_drops(void *owner)
{
	struct netobs_drops *drops = owner;

	if (drops->life.state != LIFE_STOPPING || drops->state != DRAIN_NONE)
		return 0;
	if (!drops->is_last) {
		drops->is_last = true;
		return begin_drain(drops);
	}
	keep_missed(drops);
	drop_programs_close(&drops->programs);
	drops->life.state = LIFE_STOPPED;
	set_work_timer(drops, 0);
	return 0;
}

static const struct life_ops life_ops = {
	.start = start_drops,
	.stop = stop_drops,
	.step = step_drops,
	.privileges = PRIVILEGE_PROGRAMS,
};

/* ---- The public life ------------------------------------------------------------------- */

int netobs_drops_start(struct netobs_drops *drops)
{
	return drops ? life_start(&drops->life) : -EINVAL;
}

int netobs_drops_fd(const struct netobs_drops *drops)
{
	return drops ? drops->life.loop.fd : -EINVAL;
}

int netobs_drops_dispatch(struct netobs_drops *drops)
{
	return drops ? life_dispatch(&drops->life) : -EINVAL;
}

void netobs_drops_stop(struct netobs_drops *drops)
{
	if (drops)
		life_stop(&drops->life);
}

const char *netobs_drops_last_error(const struct netobs_drops *drops)
{
	return drops ? drops->life.error.text : "";
}

int netobs_drops_stats_get(const struct netobs_drops *drops,
			   struct netobs_drops_stats *ret_stats)
{
	struct netobs_drops_stats stats;

	if (!drops || !ret_stats)
		return -EINVAL;
	stats = drops->stats;
	if (drops->programs.state) {
		stats.missed = drop_programs_missed(&drops->programs);
		stats.others = drops->programs.state->others;
	}
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
