/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "drain.h"

#include "util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

enum {
	BATCH = 2048,	     /* L2 entries per slice */
	BATCH_MAX = 1 << 17, /* a hash bucket must fit: see next_batch() */
	LARGE = 16384, /* L2 entries from which replacing the table pays */
};

void drain_init(struct drain *drain, struct store *store,
		const struct drain_ops *ops, void *ctx)
{
	*drain = (struct drain){
		.store = store,
		.ops = ops,
		.ctx = ctx,
		.l2_fd = -1,
	};
}

static void free_buffers(struct drain *drain)
{
	free(TAKE_PTR(drain->keys));
	free(TAKE_PTR(drain->tallies));
	drain->batch = 0;
}

static int grow_buffers(struct drain *drain, uint32_t batch)
{
	free_buffers(drain);
	if (batch > BATCH_MAX)
		return -ENOSPC;
	drain->keys = malloc(batch * sizeof(*drain->keys));
	drain->tallies = malloc(batch * sizeof(*drain->tallies));
	if (!drain->keys || !drain->tallies) {
		free_buffers(drain);
		return -ENOMEM;
	}
	drain->batch = batch;
	return 0;
}

static void forget_l2(struct drain *drain)
{
	if (drain->l2_private)
		close_fd(&drain->l2_fd);
	drain->l2_fd = -1;
	drain->l2_private = false;
	free_buffers(drain);
}

void drain_done(struct drain *drain)
{
	forget_l2(drain);
	drain->phase = DRAIN_IDLE;
}

void drain_start(struct drain *drain, uint32_t generation)
{
	struct table_state *table = &drain->store->tables[generation];

	drain->phase = DRAIN_L1;
	drain->generation = generation;
	drain->cpu = 0;
	drain->has_lost = false;
	drain->inserts = table->inserts;
	table->inserts = 0;
	table->announced = 0;
}

static int read_l1(struct drain *drain, uint32_t cpu)
{
	struct flow_entry *entries =
		store_map_l1(drain->store, drain->generation, cpu);

	if (!entries)
		return -errno;
	for (uint32_t i = 0; i < store_l1_slots(drain->store); i++) {
		if (!entries[i].tally.packets)
			continue;
		drain->ops->keep(drain->ctx, &entries[i]);
		entries[i].tally.packets = 0;
	}
	store_unmap_l1(drain->store, entries);
	return 0;
}

static void rewind_l2(struct drain *drain)
{
	drain->l2_started = false;
	drain->l2_position = 0;
}

/*
 * A table that is ours alone can be read twice, and freed in one go by the
 * kernel: a fifth of what it costs to delete as many entries.
 */
static int start_l2(struct drain *drain)
{
	int err = grow_buffers(drain, BATCH);

	if (err)
		return err;
	rewind_l2(drain);
	drain->l2_fd = drain->store->l2_fds[drain->generation];
	drain->phase = DRAIN_L2_SMALL;
	if (drain->inserts >= LARGE &&
	    !store_swap_l2(drain->store, drain->generation, &drain->l2_fd)) {
		drain->l2_private = true;
		drain->phase = DRAIN_L2_ANNOUNCE;
	}
	return 0;
}

static int step_l1(struct drain *drain)
{
	int err = store_read_events(drain->store, drain->ops->event, drain->ctx);

	if (err)
		return err;
	if (drain->cpu < drain->store->n_cpus)
		return read_l1(drain, drain->cpu++) ?: 1;
	if (drain->inserts)
		return start_l2(drain) ?: 1;
	drain->phase = DRAIN_IDLE;
	return 0;
}

/*
 * The next entries: their number, 0 at the end. The kernel hands out whole
 * hash buckets, and says ENOSPC when one is larger than the buffer.
 */
static int next_batch(struct drain *drain, bool *ret_last)
{
	void *in = drain->l2_started ? &drain->l2_position : NULL;
	uint32_t count;
	int err;

	do {
		count = drain->batch;
		err = drain->phase == DRAIN_L2_SMALL ?
			      bpf_map_lookup_and_delete_batch(
				      drain->l2_fd, in, &drain->l2_position,
				      drain->keys, drain->tallies, &count, NULL) :
			      bpf_map_lookup_batch(drain->l2_fd, in,
						   &drain->l2_position,
						   drain->keys, drain->tallies,
						   &count, NULL);
		if (err != -ENOSPC)
			break;
		err = grow_buffers(drain, drain->batch * 2);
	} while (!err);

	if (err && err != -ENOENT)
		return err;
	*ret_last = err == -ENOENT;
	drain->l2_started = true;
	return count;
}

static void hand_over(const struct drain *drain, uint32_t i)
{
	struct flow_entry entry;

	if (drain->phase == DRAIN_L2_ANNOUNCE) {
		drain->ops->announce(drain->ctx, &drain->keys[i]);
		return;
	}
	entry.key = drain->keys[i];
	entry.tally = drain->tallies[i];
	if (drain->phase == DRAIN_L2_DELIVER)
		drain->ops->deliver(drain->ctx, &entry);
	else
		drain->ops->keep(drain->ctx, &entry);
}

static int step_l2(struct drain *drain)
{
	bool last = false;
	int count = next_batch(drain, &last);

	if (count < 0)
		return count;
	for (int i = 0; i < count; i++)
		hand_over(drain, i);
	if (!last)
		return 1;
	if (drain->phase == DRAIN_L2_ANNOUNCE) {
		drain->phase = DRAIN_L2_DELIVER;
		rewind_l2(drain);
		return 1;
	}
	drain_done(drain);
	return 0;
}

static int step(struct drain *drain)
{
	switch (drain->phase) {
	case DRAIN_IDLE:
		return 0;
	case DRAIN_L1:
		return step_l1(drain);
	default:
		return step_l2(drain);
	}
}

int drain_step(struct drain *drain)
{
	int ret = step(drain);

	if (ret < 0) {
		drain->has_lost = drain->l2_private;
		drain->store->tables[drain->generation].inserts += drain->inserts;
		drain_done(drain);
	}
	return ret;
}
