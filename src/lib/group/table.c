/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "record/any.h"

/* ---- Sums --------------------------------------------------------------------------- */

struct netobs_group_sum sum_of_flow(const struct netobs_flow *flow)
{
	const uint64_t samples =
		flow->has & NETOBS_HAS_RTT ? flow->rtt_samples : 0;
	const bool has_drops = flow->has & NETOBS_HAS_DROPS;

	return (struct netobs_group_sum){
		.flows = 1,
		.packets = flow->packets,
		.bytes = flow->bytes,
		.rtt_samples = samples,
		.rtt_sum_ns = samples * flow->rtt_ns,
		.retransmits = flow->retransmits,
		.drop_packets = has_drops ? flow->drop_packets : 0,
		.drop_bytes = has_drops ? flow->drop_bytes : 0,
		.start_ns = flow->start_ns,
		.end_ns = flow->end_ns,
		.sampling = flow->has & NETOBS_HAS_SAMPLING ? flow->sampling : 0,
		.sampling_mode = flow->sampling_mode
	};
}

/* The counters come first, and last. */
enum { FIRST_COUNTERS = offsetof(struct netobs_group_sum, start_ns) };

void sum_subtract(struct netobs_group_sum *sum,
		  const struct netobs_group_sum *part)
{
	counters_subtract(sum, part, FIRST_COUNTERS);
	sum->drop_packets -= part->drop_packets;
	sum->drop_bytes -= part->drop_bytes;
}

void netobs_group_sum_add(struct netobs_group_sum *sum,
			  const struct netobs_group_sum *more)
{
	if (!more->flows)
		return;
	if (!sum->flows || more->start_ns < sum->start_ns)
		sum->start_ns = more->start_ns;
	if (!sum->flows || more->end_ns > sum->end_ns)
		sum->end_ns = more->end_ns;
	if (!sum->flows) {
		sum->sampling = more->sampling;
		sum->sampling_mode = more->sampling_mode;
	}
	sum->is_mixed |= more->is_mixed || sum->sampling != more->sampling ||
			 sum->sampling_mode != more->sampling_mode;
	counters_add(sum, more, FIRST_COUNTERS);
	sum->drop_packets += more->drop_packets;
	sum->drop_bytes += more->drop_bytes;
}

int netobs_group_sum_flow(struct netobs_group_sum *sum,
			  const struct netobs_flow *flow)
{
	struct netobs_group_sum more;
	union any_record copy;

	flow = sum && flow ? flow_view(flow, &copy) : NULL;
	if (!flow)
		return -EINVAL;
	more = sum_of_flow(flow);
	netobs_group_sum_add(sum, &more);
	return 0;
}

/* ---- Groups ------------------------------------------------------------------------- */

static uint32_t get_group(struct group_table *table, const uint8_t *value)
{
	return slots_get(&table->groups, value, (uint32_t)table->key_size,
			 (uint32_t)(sizeof(struct group) + table->value_size));
}

static int group_compare_bytes(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return (left->public.sum.bytes < right->public.sum.bytes) -
	       (left->public.sum.bytes > right->public.sum.bytes);
}

/* Called rarely: as many groups as it removes have to come before the next call. */
static void group_table_drop_small(struct group_table *table)
{
	struct slots *groups = &table->groups;
	const uint32_t keep = groups->n / 2;

	qsort(groups->items, groups->n, groups->item_size, group_compare_bytes);
	table->evicted_bytes += group_table_at(table, keep)->public.sum.bytes;
	for (uint32_t i = keep; i < groups->n; i++)
		netobs_group_sum_add(&table->others,
				     &group_table_at(table, i)->public.sum);
	groups->n = keep;
	slots_rehash(groups);
}

/* There is room for some groups from the beginning, so that later ones find room without memory. */
int group_table_init(struct group_table *table, size_t key_size,
		     size_t value_size, size_t most)
{
	static const uint8_t any[GROUP_VALUE_MAX];

	*table = (struct group_table){
		.value_size = value_size,
		.key_size = key_size,
		.most = most,
		.groups.key_at = offsetof(struct group, value),
	};
	if (get_group(table, any) == SLOT_NONE)
		return -ENOMEM;
	slots_clear(&table->groups);
	return 0;
}

struct group *group_table_add(struct group_table *table, const uint8_t *value,
			      const struct netobs_group_sum *sum)
{
	const bool is_full = table->groups.n == table->most &&
			     slots_find(&table->groups, value) == SLOT_NONE;
	uint32_t index = is_full ? SLOT_NONE : get_group(table, value);
	struct group *group;

	if (index == SLOT_NONE) {
		group_table_drop_small(table);
		index = get_group(table, value);
	}
	group = group_table_at(table, index);
	if (group->public.sz) {
		netobs_group_sum_add(&group->public.sum, sum);
		return group;
	}
	memcpy(group->value, value, table->value_size);
	group->public = (struct netobs_group){ sizeof(group->public), *sum,
					       table->evicted_bytes };
	return group;
}

void group_table_add_others(struct group_table *table,
			    const struct group_table *from)
{
	netobs_group_sum_add(&table->others, &from->others);
	table->evicted_bytes += from->evicted_bytes;
	for (uint32_t i = 0; from->evicted_bytes && i < table->groups.n; i++)
		group_table_at(table, i)->public.missing_bytes +=
			from->evicted_bytes;
}

void group_table_clear(struct group_table *table)
{
	slots_clear(&table->groups);
	table->others = (struct netobs_group_sum){ 0 };
	table->evicted_bytes = 0;
}

void group_table_free(struct group_table *table)
{
	slots_free(&table->groups);
}
