/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <netobs/flow.h>

#include "bpf/store/hash.h"

enum { FIRST_GROUPS = 256 };

struct tally tally_of(const struct netobs_flow *flow)
{
	const uint64_t samples =
		flow->has & NETOBS_HAS_RTT ? flow->rtt_samples : 0;

	return (struct tally){ .flows = 1,
			       .packets = flow->packets,
			       .bytes = flow->bytes,
			       .rtt_samples = samples,
			       .rtt_sum_ns = samples * flow->rtt_ns,
			       .retransmits = flow->retransmits,
			       .start_ns = flow->start_ns,
			       .end_ns = flow->end_ns,
			       .sampling = by_sampling(flow),
			       .sampling_mode = flow->sampling_mode };
}

void tally_add(struct tally *tally, const struct tally *more)
{
	if (!more->flows)
		return;
	if (!tally->flows || more->start_ns < tally->start_ns)
		tally->start_ns = more->start_ns;
	if (!tally->flows || more->end_ns > tally->end_ns)
		tally->end_ns = more->end_ns;
	if (!tally->flows) {
		tally->sampling = more->sampling;
		tally->sampling_mode = more->sampling_mode;
	}
	tally->is_mixed |= more->is_mixed || tally->sampling != more->sampling ||
			   tally->sampling_mode != more->sampling_mode;
	tally->flows += more->flows;
	tally->packets += more->packets;
	tally->bytes += more->bytes;
	tally->sent_packets += more->sent_packets;
	tally->sent_bytes += more->sent_bytes;
	tally->rtt_samples += more->rtt_samples;
	tally->rtt_sum_ns += more->rtt_sum_ns;
	tally->retransmits += more->retransmits;
}

uint64_t tally_rtt_ns(const struct tally *tally)
{
	return tally->rtt_samples ? tally->rtt_sum_ns / tally->rtt_samples : 0;
}

static size_t group_stride(const struct groups *groups)
{
	return sizeof(struct group) + groups->value_size;
}

static struct group *group_at(const struct groups *groups, size_t i)
{
	return (struct group *)(groups->groups + i * group_stride(groups));
}

const struct group *groups_at(const struct groups *groups, size_t i)
{
	return group_at(groups, i);
}

/* Senders choose what is hashed, so it takes a secret. */
static uint64_t groups_hash(const struct groups *groups, const uint8_t *value)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < groups->value_size; i += 2 * sizeof(uint32_t)) {
		uint32_t words[2];

		memcpy(words, value + i, sizeof(words));
		sum += hash_pair(words, groups->secret + i / sizeof(uint32_t));
	}
	return hash_finish(sum);
}

/* The place of a group, or the free one where it belongs. */
static uint32_t *groups_find_place(const struct groups *groups,
				   const uint8_t *value)
{
	const size_t mask = groups->places - 1;
	size_t i = groups_hash(groups, value) & mask;

	while (groups->index[i] &&
	       memcmp(group_at(groups, groups->index[i] - 1)->value, value,
		      groups->value_size) != 0)
		i = (i + 1) & mask;
	return &groups->index[i];
}

static void groups_fill_index(struct groups *groups)
{
	memset(groups->index, 0, groups->places * sizeof(*groups->index));
	for (size_t i = 0; i < groups->n; i++)
		*groups_find_place(groups, group_at(groups, i)->value) =
			(uint32_t)i + 1;
}

/* At most half of the places are taken. */
static int groups_resize(struct groups *groups, size_t size)
{
	const size_t places = 2 * size;
	uint32_t *index = calloc(places, sizeof(*index));
	uint8_t *all = index ? reallocarray(groups->groups, size,
					    group_stride(groups)) :
			       NULL;

	if (!all) {
		free(index);
		return -ENOMEM;
	}
	free(groups->index);
	groups->groups = all;
	groups->index = index;
	groups->size = size;
	groups->places = places;
	groups_fill_index(groups);
	return 0;
}

static int groups_grow(struct groups *groups)
{
	return groups_resize(groups,
			     groups->size ? 2 * groups->size : FIRST_GROUPS);
}

static int group_compare_bytes(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return (left->tally.bytes < right->tally.bytes) -
	       (left->tally.bytes > right->tally.bytes);
}

/* Rarely: as many groups as are dropped have to come until the next time. */
static void groups_drop_small(struct groups *groups)
{
	const size_t keep = groups->n / 2;

	qsort(groups->groups, groups->n, group_stride(groups),
	      group_compare_bytes);
	for (size_t i = keep; i < groups->n; i++)
		tally_add(&groups->others, &group_at(groups, i)->tally);
	groups->n = keep;
	groups_fill_index(groups);
}

int groups_init(struct groups *groups, size_t value_size, size_t most)
{
	*groups = (struct groups){ .value_size = value_size, .most = most };
	if (getrandom(groups->secret, sizeof(groups->secret), 0) < 0)
		return -errno;
	return groups_grow(groups);
}

void groups_add(struct groups *groups, const uint8_t value[BY_SIZE],
		const struct tally *tally)
{
	uint32_t *place = groups_find_place(groups, value);
	struct group *group;

	if (*place) {
		tally_add(&group_at(groups, *place - 1)->tally, tally);
		return;
	}
	if (groups->n == groups->most ||
	    (groups->n == groups->size && groups_grow(groups) < 0))
		groups_drop_small(groups);
	group = group_at(groups, groups->n++);
	memcpy(group->value, value, groups->value_size);
	group->tally = *tally;
	*groups_find_place(groups, value) = (uint32_t)groups->n;
}

void groups_add_all(struct groups *groups, const struct groups *more)
{
	for (size_t i = 0; i < more->n; i++)
		groups_add(groups, groups_at(more, i)->value,
			   &groups_at(more, i)->tally);
	tally_add(&groups->others, &more->others);
}

void groups_clear(struct groups *groups)
{
	groups->n = 0;
	groups->others = (struct tally){ 0 };
	memset(groups->index, 0, groups->places * sizeof(*groups->index));
}

void groups_free(struct groups *groups)
{
	free(groups->groups);
	free(groups->index);
	*groups = (struct groups){ 0 };
}
