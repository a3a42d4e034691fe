// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_feed.h"

#include "base/util.h"
#include "drop_class.h"
#include "drops.skel.h"
#include "engine/map.h"
#include "engine/store.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLICE_MS = 4, /* of a step, for entries */
	BATCH = 256,  /* entries that the kernel copies at once */
};

struct drop_batch {
	struct drop_key keys[BATCH];
	struct drop_value values[BATCH];
};

/* ---- Records --------------------------------------------------------------------------- */

_Static_assert((int)DROP_HAS_ADDRS == (int)NETOBS_DROP_HAS_ADDRS &&
		       (int)DROP_HAS_PORTS == (int)NETOBS_DROP_HAS_PORTS &&
		       (int)DROP_HAS_REASON == (int)NETOBS_DROP_HAS_REASON &&
		       (int)DROP_IS_REST == (int)NETOBS_DROP_HAS_REST &&
		       (int)DROP_HAS_ORIG == (int)NETOBS_DROP_HAS_ORIG &&
		       (int)DROP_HAS_ORIG_PORTS == (int)NETOBS_DROP_HAS_ORIG_PORTS,
	       "they are copied");

static void fill_function(const struct drop_feed *feed,
			  const struct drop_key *key, struct netobs_drop *drop)
{
	char text[DROP_FUNCTION_LEN];

	if (!bpf_map_lookup_elem(feed->programs.functions_fd, &key->location,
				 text)) {
		text[sizeof(text) - 1] = '\0';
		if (drop_names_split(text, drop->function,
				     sizeof(drop->function), &drop->offset))
			return;
	}
	drop_names_find(&feed->names, key->location, drop->function,
			sizeof(drop->function), &drop->offset);
}

/* A packet that was dropped before NAT changes it has no other tuple. */
static void fill_origin(const struct drop_key *key, struct netobs_drop *drop)
{
	const uint32_t orig = NETOBS_DROP_HAS_ORIG | NETOBS_DROP_HAS_ORIG_PORTS;

	if (key->src_port == key->orig_src_port &&
	    key->dst_port == key->orig_dst_port &&
	    !memcmp(&key->src, &key->orig_src, sizeof(key->src)) &&
	    !memcmp(&key->dst, &key->orig_dst, sizeof(key->dst)))
		drop->record.has &= ~orig;
	if (!(drop->record.has & NETOBS_DROP_HAS_ORIG))
		return;
	memcpy(drop->orig_src, key->orig_src.bytes, sizeof(drop->orig_src));
	memcpy(drop->orig_dst, key->orig_dst.bytes, sizeof(drop->orig_dst));
	drop->orig_src_port = key->orig_src_port;
	drop->orig_dst_port = key->orig_dst_port;
}

/* An entry of the programs' tables as a record. */
static void fill_drop(const struct drop_feed *feed, const struct drop_key *key,
		      const struct drop_value *value,
		      struct netobs_drop *ret_drop)
{
	struct netobs_drop drop = {
		.record = { .sz = sizeof(drop),
			    .has = key->has,
			    .type = NETOBS_RECORD_DROP,
			    .time_ns = feed->drained_ns },
		.src_port = key->src_port,
		.dst_port = key->dst_port,
		.ethertype = key->ethertype,
		.protocol = key->proto,
		.unparsed = key->unparsed,
		.reason = key->reason,
		.ifindex = key->ifindex,
		.netns_inode = key->netns,
		.packets = value->packets,
		.bytes = value->bytes,
		.last_ns = clock_to_wall(&feed->clock, (int64_t)value->last_ns),
	};

	memcpy(drop.src, key->src.bytes, sizeof(drop.src));
	memcpy(drop.dst, key->dst.bytes, sizeof(drop.dst));
	fill_origin(key, &drop);
	memcpy(drop.interface, value->interface, sizeof(drop.interface));
	drop.interface[sizeof(drop.interface) - 1] = '\0';
	if (key->has & DROP_HAS_REASON)
		drop_names_cause(&feed->names, key->reason, drop.cause,
				 sizeof(drop.cause));
	fill_function(feed, key, &drop);
	drop.kind = (uint8_t)drop_kind(drop.cause, drop.function);
	drop.layer =
		(uint8_t)drop_layer(drop.cause, drop.function, drop.ethertype);
	*ret_drop = drop;
}

/* ---- Reading --------------------------------------------------------------------------- */

/* Take drops of the old generation. The others are being counted. */
static void take_batch(const struct drop_feed *feed, uint32_t n)
{
	struct netobs_drop drop;

	for (uint32_t i = 0; i < n; i++) {
		const struct drop_key *key = &feed->batch->keys[i];

		if (key->generation != feed->generation)
			continue;
		bpf_map_delete_elem(feed->map_fd, key);
		fill_drop(feed, key, &feed->batch->values[i], &drop);
		feed->take(&drop, feed->ctx);
	}
}

/* @return 1: there may be more; 0: those were all; < 0 */
static int read_batch(struct drop_feed *feed)
{
	uint32_t n = BATCH, *from = feed->has_cursor ? &feed->cursor : NULL;
	uint32_t next;
	int err = bpf_map_lookup_batch(feed->map_fd, from, &next,
				       feed->batch->keys, feed->batch->values,
				       &n, NULL);

	if (err && errno != ENOENT)
		return -errno;
	feed->cursor = next;
	feed->has_cursor = true;
	take_batch(feed, n);
	return !err;
}

/* No program writes to what belongs to the old generation. */
static void end_generation(struct drop_feed *feed)
{
	struct drop_state *state = feed->programs.state;
	struct count *lost = &state->lost[feed->generation];

	feed->lose(lost, feed->ctx);
	*lost = (struct count){ 0 };
	state->used[feed->generation] = (struct drop_used){ 0 };
	feed->state = FEED_IDLE;
}

static void read_map(struct drop_feed *feed, int map_fd)
{
	feed->map_fd = map_fd;
	feed->has_cursor = false;
}

/* Both maps, one after the other; @return 0: later calls go on, or all was read; < 0 */
static int read_generation(struct drop_feed *feed)
{
	const int64_t end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	int r;

	while (clock_boot_ns() < end_ns) {
		r = read_batch(feed);
		if (r < 0)
			return r;
		if (r)
			continue;
		if (feed->map_fd == feed->programs.rest_fd) {
			end_generation(feed);
			return 0;
		}
		read_map(feed, feed->programs.rest_fd);
	}
	return 0;
}

static int await_grace(struct drop_feed *feed)
{
	int err = map_grace_result(&feed->grace);

	if (err)
		return err == -EAGAIN ? 0 : err;
	feed->state = FEED_READ;
	read_map(feed, feed->programs.drops_fd);
	return 0;
}

/* ---- Drains ---------------------------------------------------------------------------- */

int drop_feed_begin(struct drop_feed *feed)
{
	uint32_t *generation = &feed->programs.state->generation;
	int err;

	clock_calibrate(&feed->clock);
	feed->generation = *generation;
	__atomic_store_n(generation, *generation ^ 1, __ATOMIC_SEQ_CST);
	feed->ended_ns = clock_boot_ns();
	feed->drained_ns = clock_to_wall(
		&feed->clock, clock_to_stamp(&feed->clock, feed->ended_ns));
	err = map_grace_begin(&feed->grace);
	if (!err)
		feed->state = FEED_GRACE;
	return err;
}

int drop_feed_step(struct drop_feed *feed)
{
	int err = feed->state == FEED_GRACE ? await_grace(feed) : 0;

	if (!err && feed->state == FEED_READ)
		err = read_generation(feed);
	if (err) /* the next drain of that generation reads it */
		feed->state = FEED_IDLE;
	return err ?: feed->state != FEED_IDLE;
}

/* ---- Life ------------------------------------------------------------------------------ */

int drop_feed_open(struct drop_feed *feed, bool no_reasons, const struct log *log)
{
	int err = -ENOMEM;

	feed->batch = malloc(sizeof(*feed->batch));
	if (feed->batch)
		err = drop_programs_open(&feed->programs, no_reasons, log);
	if (err) {
		drop_feed_close(feed);
		return err;
	}
	clock_init(&feed->clock, CLOCK_HOST);
	drop_names_open(&feed->names, feed->programs.has_reasons, log);
	if (!feed->programs.has_reasons)
		log_warning(
			log,
			"the kernel states no reasons of drops (drop_reasons): only the function is known");
	return 0;
}

void drop_feed_close(struct drop_feed *feed)
{
	map_grace_abandon(feed->grace);
	drop_programs_close(&feed->programs);
	drop_names_close(&feed->names);
	free(feed->batch);
	*feed = (struct drop_feed){ 0 };
}

/* ---- Programs ------------------------------------------------------------------------ */

static const struct log silent;

/* Programs by the number of arguments of the tracepoint, the most first; see drops.bpf.c. */
static const struct variant {
	const char *programs[2];
	bool has_reasons;
} variants[] = {
	{ { "netobs_drop_sk", "netobs_drop_sk2" }, true },
	{ { "netobs_drop_why", "netobs_drop_why2" }, true },
	{ { "netobs_drop_at", "netobs_drop_at2" }, false },
};

static int prepare_drops(struct bpf_object *object, void *ctx)
{
	struct drops_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct drop_programs *programs = ctx;

	if (!rodata)
		return -ENOENT;
	rodata->config_has_reason = programs->has_reasons;
	rodata->config_has_nat = programs->has_nat;
	memcpy((void *)&rodata->config_nat, &programs->nat,
	       sizeof(programs->nat));
	return 0;
}

static int try_variant(struct drop_programs *programs,
		       const struct variant *variant, const struct log *log)
{
	*programs = (struct drop_programs){
		.nat = programs->nat,
		.has_nat = programs->has_nat,
		.set = { .name = "drops_bpf",
			 .elf = drops_bpf__elf_bytes,
			 .doing = "load BPF programs for dropped packets",
			 .log = log,
			 .points_only = true,
			 .points = programs->points,
			 .n_points = ARRAY_SIZE(programs->points),
			 .prepare = prepare_drops,
			 .ctx = programs },
		.points = { { .program = variant->programs[0] },
			    { .program = variant->programs[1] } },
		.has_reasons = variant->has_reasons,
	};
	return program_set_ref(&programs->set);
}

static bool is_refusal(int err)
{
	return err == -EACCES || err == -EINVAL;
}

/* COMPAT(<6.11), COMPAT(<5.17): the verifier refuses programs that use arguments the tracepoint lacks. */
static int load_variant(struct drop_programs *programs, bool no_reasons,
			const struct log *log)
{
	const size_t last = ARRAY_SIZE(variants) - 1;
	size_t i = no_reasons ? last : 0;
	int err;

	for (; i < last; i++) {
		err = try_variant(programs, &variants[i], &silent);
		if (!err)
			return 0;
		if (!is_refusal(err))
			break; /* load the same variant again, to log the error */
	}
	return try_variant(programs, &variants[i], log);
}

int drop_programs_open(struct drop_programs *programs, bool no_reasons,
		       const struct log *log)
{
	int err;

	programs->has_nat = !nat_find_layout(&programs->nat, &silent);
	err = load_variant(programs, no_reasons, log ?: &silent);
	if (err) {
		*programs = (struct drop_programs){ 0 };
		return err;
	}
	programs->set.log = &silent; /* the caller's may end before the programs */
	programs->state = program_set_mmap(&programs->set, "drop_state",
					   sizeof(*programs->state));
	programs->drops_fd = program_set_map_fd(&programs->set, "drops");
	programs->rest_fd = program_set_map_fd(&programs->set, "drops_rest");
	programs->functions_fd =
		program_set_map_fd(&programs->set, "drop_functions");
	if (programs->state)
		return 0;
	err = -errno;
	drop_programs_close(programs);
	return err;
}

void drop_programs_detach(struct drop_programs *programs)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs->points); i++)
		program_set_detach(&programs->set, programs->points[i].program);
}

void drop_programs_close(struct drop_programs *programs)
{
	if (programs->state)
		map_munmap(programs->state, sizeof(*programs->state));
	program_set_unref(&programs->set);
	*programs = (struct drop_programs){ 0 };
}

/* COMPAT(<6.1): there a program of a tracepoint is not refused, and it counts what it misses. */
uint64_t drop_programs_missed(const struct drop_programs *programs)
{
	const struct bpf_program *first;
	uint64_t nested, missed, skipped;

	if (!programs->set.object)
		return 0;
	first = bpf_object__find_program_by_name(programs->set.object,
						 programs->points[0].program);
	skipped = first ? program_misses(first) : 0;
	nested = __atomic_load_n(&programs->state->nested, __ATOMIC_RELAXED);
	missed = __atomic_load_n(&programs->state->missed, __ATOMIC_RELAXED);
	return missed + (skipped > nested ? skipped - nested : 0);
}
