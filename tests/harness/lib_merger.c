/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_merger.h"

struct merge_options merger_every_second(void)
{
	return (struct merge_options){
		.interval_ns = 1000 * NSEC_PER_MSEC,
		.idle_timeout_ns = 15000 * NSEC_PER_MSEC,
		.max_flows = 1 << 20,
		.tunnel_addrs_fd = -1,
	};
}

struct merge_options merger_every_minute(void)
{
	struct merge_options options = merger_every_second();

	options.active_timeout_ns = 60000 * NSEC_PER_MSEC;
	return options;
}

void merger_open_in(struct merger *merger, struct merge_options options,
		    uint32_t n_netns, const struct world_link *links)
{
	memset(merger, 0, sizeof(*merger));
	options.on_record = witness_on_flow;
	options.user = &merger->witness;
	merger->clock.kind = CLOCK_HOST;
	world_build(&merger->host, n_netns, links);
	merge_init(&merger->merge, &options, &merger->host, &merger->clock);
}

void merger_open(struct merger *merger, struct merge_options options)
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 2 },
						   { .ifindex = 0 } };

	merger_open_in(merger, options, 1, links);
}

void merger_close(struct merger *merger)
{
	merge_done(&merger->merge);
	host_done(&merger->host);
	witness_clear(&merger->witness);
}

const struct world_link merger_bridged[] = { { .ifindex = 1, .master = 3 },
					     { .ifindex = 2, .master = 3 },
					     { .ifindex = 3 },
					     { .ifindex = 4 },
					     { .ifindex = 0 } };

static struct merger of_case;

int merger_set_up(void **state)
{
	merger_open(&of_case, merger_every_second());
	*state = &of_case;
	return 0;
}

int merger_set_up_bridged(void **state)
{
	merger_open_in(&of_case, merger_every_second(), 1, merger_bridged);
	*state = &of_case;
	return 0;
}

int merger_tear_down(void **state)
{
	merger_close(*state);
	return 0;
}

void merger_begin(struct merger *merger, enum merge_mode mode, int64_t flip_ms)
{
	merge_begin(&merger->merge, mode, flip_ms * NSEC_PER_MSEC);
}

struct flow_entry merger_entry(uint32_t ifindex, uint8_t flags, uint64_t packets,
			       int64_t first_ms, int64_t last_ms)
{
	struct flow_key key = world_key(0, ifindex, false);

	key.flags = flags;
	return world_entry(&key, packets, first_ms * NSEC_PER_MSEC,
			   last_ms * NSEC_PER_MSEC);
}

static void look(struct merger *merger, const struct flow_entry *entry,
		 struct sighting *ret_sighting)
{
	struct volume volume = { entry->tally.packets, entry->tally.bytes,
				 entry->tally.l2_bytes };

	merge_look(&merger->merge, &entry, 1, ret_sighting);
	volume_add(&merger->merged, &volume);
	if (ret_sighting->sight == SIGHT_FIRST)
		volume_add(&merger->entered, &volume);
}

void merger_keep_entry(struct merger *merger, const struct flow_entry *entry)
{
	struct sighting sighting;

	look(merger, entry, &sighting);
	merge_keep(&merger->merge, entry, &sighting);
}

void merger_keep(struct merger *merger, uint32_t ifindex, uint8_t flags,
		 uint64_t packets, int64_t first_ms, int64_t last_ms)
{
	struct flow_entry entry =
		merger_entry(ifindex, flags, packets, first_ms, last_ms);

	merger_keep_entry(merger, &entry);
}

void merger_deliver(struct merger *merger, const struct flow_entry *entries,
		    uint32_t n)
{
	struct sighting sighting;

	merge_expect(&merger->merge, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct flow_entry *entry = &entries[i];

		merge_announce(&merger->merge, &entry, 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		look(merger, &entries[i], &sighting);
		merge_deliver(&merger->merge, &entries[i], &sighting);
	}
}

uint64_t merger_repeated(const struct merger *merger)
{
	return merger->merged.packets - merger->entered.packets -
	       merger->merge.inferred.packets;
}

void merger_end(struct merger *merger)
{
	const struct merge *merge = &merger->merge;

	while (merge_sweep(&merger->merge))
		;
	assert_int_equal(merger->entered.packets + merge->inferred.packets,
			 merge->exported.packets + merge->small.packets +
				 merge->pending.packets + merge->lost.packets);
	assert_int_equal(merger->entered.bytes + merge->inferred.bytes,
			 merge->exported.bytes + merge->small.bytes +
				 merge->pending.bytes + merge->lost.bytes);
	assert_int_equal(merge->records, merger->witness.n_flows);
	assert_int_equal(merge->exported.packets, merger->witness.packets);
	assert_int_equal(merge->exported.bytes, merger->witness.bytes);
}

void merger_drain(struct merger *merger, enum merge_mode mode, int64_t flip_ms,
		  uint32_t ifindex, uint8_t flags, uint64_t packets,
		  int64_t first_ms, int64_t last_ms)
{
	merger_begin(merger, mode, flip_ms);
	merger_keep(merger, ifindex, flags, packets, first_ms, last_ms);
	merger_end(merger);
}

const struct netobs_flow *merger_last_record(const struct merger *merger)
{
	assert_true(merger->witness.n_flows > 0);
	return &merger->witness.flows[merger->witness.n_flows - 1].flow;
}

void merger_assert_record(const struct merger *merger, uint32_t n_records,
			  uint64_t packets, enum netobs_end_reason reason)
{
	const struct netobs_flow *flow = merger_last_record(merger);

	assert_int_equal(merger->witness.n_flows, n_records);
	assert_int_equal(flow->packets, packets);
	assert_int_equal(flow->bytes, packets * WORLD_BYTES);
	assert_int_equal(flow->l2_bytes, packets * WORLD_L2_BYTES);
	assert_int_equal(flow->end_reason, reason);
}
