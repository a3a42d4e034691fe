// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "queue_sums.h"

#include "base/text.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <string.h>

/* ---- Sums --------------------------------------------------------------------------- */

void queue_sums_add(struct queue_sums *sums, const struct queue_bucket *bucket)
{
	sums->bytes += bucket->bytes;
	sums->waited_ns += bucket->waited_ns;
	for (int i = 0; i < QUEUE_SHARES; i++) {
		const struct queue_sum sum = { bucket->shares[i].id,
					       bucket->shares[i].bytes };
		struct queue_sum *its = NULL;

		if (sum.id)
			its = slots_add(&sums->flows, &sum.id, sizeof(sum.id),
					sizeof(sum));
		if (its)
			its->bytes += sum.bytes;
	}
}

struct netobs_queue_share *queue_add_largest(struct netobs_queue *queue,
					     uint64_t amount)
{
	struct netobs_queue_share *shares = queue->shares;
	uint32_t i = queue->n_shares;

	while (i && shares[i - 1].amount < amount)
		i--;
	if (i == NETOBS_QUEUE_SHARES_MAX)
		return NULL;
	queue->n_shares += queue->n_shares < NETOBS_QUEUE_SHARES_MAX;
	memmove(&shares[i + 1], &shares[i],
		(queue->n_shares - 1 - i) * sizeof(*shares));
	shares[i] = (struct netobs_queue_share){ .amount = amount };
	return &shares[i];
}

uint32_t queue_sums_fill(const struct queue_sums *sums, struct netobs_queue *queue)
{
	queue->rest = queue->amount = sums->bytes;
	for (uint32_t i = 0; i < sums->flows.n; i++) {
		const struct queue_sum *sum = slots_at(&sums->flows, i);
		struct netobs_queue_share *share =
			queue_add_largest(queue, sum->bytes);

		if (share)
			share->pid = sum->id;
	}
	return queue->n_shares;
}

void queue_sums_clear(struct queue_sums *sums)
{
	slots_clear(&sums->flows);
	sums->bytes = sums->waited_ns = 0;
}

void queue_sums_free(struct queue_sums *sums)
{
	slots_free(&sums->flows);
	*sums = (struct queue_sums){ 0 };
}

/* ---- Sockets ------------------------------------------------------------------------ */

static bool is_same(const struct ip_addr *one, const struct ip_addr *other)
{
	return !memcmp(one, other, sizeof(*one));
}

static struct ip_addr address_of(const uint32_t words[4], bool is_v4)
{
	struct ip_addr addr = { .bytes = { [10] = 0xff, 0xff } };

	if (is_v4)
		memcpy(addr.bytes + 12, words, 4);
	else
		memcpy(&addr, words, sizeof(addr));
	return addr;
}

struct queue_flow queue_origin(const struct queue_sender *sender)
{
	const struct nat_tuple *before = &sender->before;
	struct queue_flow origin = sender->flow;

	if (!before->family || before->proto != origin.proto)
		return origin;
	origin.src = address_of(before->src, before->family == AF_INET);
	origin.dst = address_of(before->dst, before->family == AF_INET);
	origin.src_port = ntohs(before->src_port);
	origin.dst_port = ntohs(before->dst_port);
	return origin;
}

enum queue_match queue_match(const struct queue_owner *owner,
			     const struct queue_flow *origin, uint64_t socket)
{
	const struct queue_flow *flow = &owner->flow;
	const bool is_bound = !ip_is_unspecified(flow->src.bytes);

	if (socket && owner->socket == socket)
		return QUEUE_SOCKET;
	if (flow->proto != origin->proto || !flow->src_port ||
	    flow->src_port != origin->src_port ||
	    (is_bound && !is_same(&flow->src, &origin->src)))
		return QUEUE_NO_MATCH;
	if (!ip_is_unspecified(flow->dst.bytes))
		return is_same(&flow->dst, &origin->dst) &&
				       flow->dst_port == origin->dst_port ?
			       QUEUE_CONNECTED :
			       QUEUE_NO_MATCH;
	return is_bound ? QUEUE_ITS_ADDRESS : QUEUE_ANY_ADDRESS;
}
