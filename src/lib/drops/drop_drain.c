// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_drain.h"

#include "base/util.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	SLICE_MS = 4, /* of a step, for entries */
	BATCH = 256,  /* entries that the kernel copies at once */
};

struct drop_batch {
	struct drop_key keys[BATCH];
	struct drop_value values[BATCH];
};

int drop_drain_open(struct drop_drain *drain, bool no_reasons,
		    const struct log *log)
{
	int err;

	drain->batch = malloc(sizeof(*drain->batch));
	if (!drain->batch)
		return -ENOMEM;
	err = drop_programs_open(&drain->programs, no_reasons, log);
	if (err) {
		drop_drain_close(drain);
		return err;
	}
	clock_init(&drain->clock, CLOCK_PRECISE);
	drop_names_open(&drain->names, drain->programs.has_reasons, log);
	drain->source = (struct drop_source){ &drain->clock, &drain->names,
					      drain->programs.functions_fd };
	if (!drain->programs.has_reasons)
		log_warning(
			log,
			"the kernel states no reasons of drops (drop_reasons): only the function is known");
	return 0;
}

void drop_drain_close(struct drop_drain *drain)
{
	map_grace_abandon(drain->grace);
	drain->grace = NULL;
	drain->state = DRAIN_NONE;
	drop_programs_close(&drain->programs);
	drop_names_close(&drain->names);
	free(drain->batch);
	drain->batch = NULL;
}

/* ---- Reading --------------------------------------------------------------------------- */

/* Of the old generation. The others are being counted. */
static void take_batch(struct drop_drain *drain, uint32_t n)
{
	struct netobs_drop drop;

	for (uint32_t i = 0; i < n; i++) {
		const struct drop_key *key = &drain->batch->keys[i];

		if (key->generation != drain->generation)
			continue;
		bpf_map_delete_elem(drain->map_fd, key);
		drop_fill(&drain->source, key, &drain->batch->values[i],
			  drain->drained_ns, &drop);
		drain->take(&drop, drain->ctx);
	}
}

/* @return 1: there may be more; 0: those were all; < 0 */
static int read_batch(struct drop_drain *drain)
{
	uint32_t n = BATCH, *from = drain->has_cursor ? &drain->cursor : NULL;
	uint32_t next;
	int err = bpf_map_lookup_batch(drain->map_fd, from, &next,
				       drain->batch->keys, drain->batch->values,
				       &n, NULL);

	if (err && errno != ENOENT)
		return -errno;
	drain->cursor = next;
	drain->has_cursor = true;
	take_batch(drain, n);
	return !err;
}

/* No program writes to what belongs to the old generation. */
static void end_drain(struct drop_drain *drain)
{
	struct drop_state *state = drain->programs.state;
	struct count *lost = &state->lost[drain->generation];

	count_add(&drain->lost, lost);
	*lost = (struct count){ 0 };
	state->used[drain->generation] = (struct drop_used){ 0 };
	drain->state = DRAIN_NONE;
}

static void read_map(struct drop_drain *drain, int map_fd)
{
	drain->map_fd = map_fd;
	drain->has_cursor = false;
}

/* Both maps, one after the other; @return 0: later calls go on, or all was read; < 0 */
static int read_generation(struct drop_drain *drain)
{
	const int64_t end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	int r;

	while (clock_boot_ns() < end_ns) {
		r = read_batch(drain);
		if (r < 0)
			return r;
		if (r)
			continue;
		if (drain->map_fd == drain->programs.rest_fd) {
			end_drain(drain);
			return 0;
		}
		read_map(drain, drain->programs.rest_fd);
	}
	return 0;
}

static int await_grace(struct drop_drain *drain)
{
	int err = map_grace_result(&drain->grace);

	if (err)
		return err == -EAGAIN ? 0 : err;
	drain->state = DRAIN_READ;
	read_map(drain, drain->programs.drops_fd);
	return 0;
}

int drop_drain_begin(struct drop_drain *drain)
{
	uint32_t *generation = &drain->programs.state->generation;
	int err;

	assert(drop_drain_is_idle(drain));
	clock_calibrate(&drain->clock);
	drain->generation = *generation;
	__atomic_store_n(generation, *generation ^ 1, __ATOMIC_SEQ_CST);
	drain->ended_ns = clock_boot_ns();
	drain->drained_ns = clock_to_wall(
		&drain->clock, clock_to_stamp(&drain->clock, drain->ended_ns));
	err = map_grace_begin(&drain->grace);
	if (!err)
		drain->state = DRAIN_GRACE;
	return err;
}

int drop_drain_step(struct drop_drain *drain)
{
	int err = drain->state == DRAIN_GRACE ? await_grace(drain) : 0;

	if (!err && drain->state == DRAIN_READ)
		err = read_generation(drain);
	if (err)
		drain->state =
			DRAIN_NONE; /* the next drain of that generation reads it */
	return err;
}
