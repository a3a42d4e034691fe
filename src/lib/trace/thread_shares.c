// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "thread_sums.h"

#include "base/util.h"
#include "queue_sums.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_NS (2 * NSEC_PER_SEC)

static bool is_group(uint32_t whose)
{
	return whose & SCHED_IS_GROUP;
}

static void add(struct thread_shares *shares, const struct sched_share_key *key,
		const struct sched_share *share, int64_t now_ns)
{
	struct thread_share *sum = slots_add(&shares->items, key, sizeof(*key),
					     sizeof(struct thread_share));

	if (!sum)
		return;
	sum->share.ns += share->ns;
	sum->recent_ns[shares->reads % THREAD_SHARES_READS] += share->ns;
	memcpy(sum->share.command, share->command, sizeof(share->command));
	sum->at_ns = now_ns;
}

static void forget(struct thread_shares *shares, uint32_t i)
{
	const struct thread_share *share = slots_at(&shares->items, i);
	const struct sched_share_key key = share->key;

	slots_remove(&shares->items, &key);
}

/* Subtract what members of groups had a second ago, and drop what is in no record. */
static void age(struct thread_shares *shares, int64_t now_ns)
{
	for (uint32_t i = shares->items.n; i--;) {
		struct thread_share *share = slots_at(&shares->items, i);
		uint64_t *oldest_ns =
			&share->recent_ns[shares->reads % THREAD_SHARES_READS];

		if (is_group(share->key.whose))
			share->share.ns -= *oldest_ns;
		*oldest_ns = 0;
		if (now_ns - share->at_ns > KEPT_NS)
			forget(shares, i);
	}
}

void thread_shares_read(struct thread_shares *shares, int fd, int64_t now_ns)
{
	cleanup_free struct sched_share_key *keys =
		calloc(SCHED_SHARES_MAX, sizeof(*keys));
	cleanup_free struct sched_share *values =
		calloc(SCHED_SHARES_MAX, sizeof(*values));
	uint32_t n = SCHED_SHARES_MAX, batch;

	shares->reads++;
	age(shares, now_ns);
	if (!keys || !values)
		return;
	if (bpf_map_lookup_and_delete_batch(fd, NULL, &batch, keys, values, &n,
					    NULL) &&
	    errno != ENOENT)
		return;
	for (uint32_t i = 0; i < n; i++)
		add(shares, &keys[i], &values[i], now_ns);
}

static void add_process(struct netobs_queue *queue,
			const struct thread_share *from)
{
	struct netobs_queue_share *share =
		queue_add_largest(queue, from->share.ns);

	queue->amount += from->share.ns;
	if (!share)
		return;
	share->pid = from->key.pid;
	memcpy(share->command, from->share.command, sizeof(share->command));
}

struct sched_share thread_shares_fill(struct thread_shares *shares,
				      uint32_t whose, struct netobs_queue *queue)
{
	struct sched_share none = { 0 };

	for (uint32_t i = shares->items.n; i--;) {
		const struct thread_share *share = slots_at(&shares->items, i);

		if (share->key.whose != whose)
			continue;
		if (!share->key.pid)
			none = share->share;
		else if (share->share.ns)
			add_process(queue, share);
		if (!is_group(whose))
			forget(shares, i);
	}
	queue->rest = queue->amount;
	for (uint32_t i = 0; i < queue->n_shares; i++)
		queue->rest -= queue->shares[i].amount;
	return none;
}

void thread_shares_free(struct thread_shares *shares)
{
	slots_free(&shares->items);
}
