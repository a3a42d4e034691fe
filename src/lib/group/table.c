/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "record/any.h"

enum { FIRST_GROUPS = 256 };

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

struct group *group_table_at(const struct group_table *table, size_t i)
{
	return (struct group *)(table->groups + i * group_table_stride(table));
}

/* The hash has a secret, as senders choose the hashed bytes. */
static uint64_t group_table_hash(const struct group_table *table,
				 const uint8_t *value)
{
	return hash_bytes(value, table->key_size, table->secret);
}

/* @return the place of a group, or the free one where it belongs */
static uint32_t *group_table_find_place(const struct group_table *table,
					const uint8_t *value)
{
	const size_t mask = table->places - 1;
	size_t i = group_table_hash(table, value) & mask;

	while (table->index[i] &&
	       memcmp(group_table_at(table, table->index[i] - 1)->value, value,
		      table->key_size) != 0)
		i = (i + 1) & mask;
	return &table->index[i];
}

static void group_table_fill_index(struct group_table *table)
{
	memset(table->index, 0, table->places * sizeof(*table->index));
	for (size_t i = 0; i < table->n; i++)
		*group_table_find_place(table, group_table_at(table, i)->value) =
			(uint32_t)i + 1;
}

/* At most half of the places are taken. */
static int group_table_resize(struct group_table *table, size_t size)
{
	const size_t places = 2 * size;
	uint32_t *index = calloc(places, sizeof(*index));
	uint8_t *all = index ? reallocarray(table->groups, size,
					    group_table_stride(table)) :
			       NULL;

	if (!all) {
		free(index);
		return -ENOMEM;
	}
	free(table->index);
	table->groups = all;
	table->index = index;
	table->size = size;
	table->places = places;
	group_table_fill_index(table);
	return 0;
}

static int group_table_grow(struct group_table *table)
{
	return group_table_resize(table,
				  table->size ? 2 * table->size : FIRST_GROUPS);
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
	const size_t keep = table->n / 2;

	qsort(table->groups, table->n, group_table_stride(table),
	      group_compare_bytes);
	table->evicted_bytes += group_table_at(table, keep)->public.sum.bytes;
	for (size_t i = keep; i < table->n; i++)
		netobs_group_sum_add(&table->others,
				     &group_table_at(table, i)->public.sum);
	table->n = keep;
	group_table_fill_index(table);
}

int group_table_init(struct group_table *table, size_t key_size,
		     size_t value_size, size_t most)
{
	*table = (struct group_table){ .value_size = value_size,
				       .key_size = key_size,
				       .most = most };
	secret_fill(table->secret, sizeof(table->secret));
	return group_table_grow(table);
}

struct group *group_table_add(struct group_table *table, const uint8_t *value,
			      const struct netobs_group_sum *sum)
{
	uint32_t *place = group_table_find_place(table, value);
	struct group *group;

	if (*place) {
		group = group_table_at(table, *place - 1);
		netobs_group_sum_add(&group->public.sum, sum);
		return group;
	}
	if (table->n == table->most ||
	    (table->n == table->size && group_table_grow(table) < 0))
		group_table_drop_small(table);
	group = group_table_at(table, table->n++);
	memcpy(group->value, value, table->value_size);
	group->public = (struct netobs_group){ sizeof(group->public), *sum,
					       table->evicted_bytes };
	*group_table_find_place(table, value) = (uint32_t)table->n;
	return group;
}

void group_table_add_others(struct group_table *table,
			    const struct group_table *from)
{
	netobs_group_sum_add(&table->others, &from->others);
	table->evicted_bytes += from->evicted_bytes;
	for (size_t i = 0; from->evicted_bytes && i < table->n; i++)
		group_table_at(table, i)->public.missing_bytes +=
			from->evicted_bytes;
}

void group_table_clear(struct group_table *table)
{
	table->n = 0;
	table->others = (struct netobs_group_sum){ 0 };
	table->evicted_bytes = 0;
	memset(table->index, 0, table->places * sizeof(*table->index));
}

void group_table_free(struct group_table *table)
{
	free(table->groups);
	free(table->index);
	*table = (struct group_table){ 0 };
}
