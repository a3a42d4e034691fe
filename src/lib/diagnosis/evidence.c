// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the hosts counted in the window, and who filled their queues. */
#include "diagnosis_state.h"

#include <stdio.h>

enum { LIST_MAX = 256 };

/* ---- What hosts counted ---------------------------------------------------------------------- */

static bool is_host_of(const struct talk *talk, int end, uint32_t host)
{
	return talk->hosts[end] == host;
}

/* Counts are of a second or so: of those at the edge of the window, a part may belong to the time before it. */
static bool is_in_window(const struct talk *talk, int end, int64_t begin_ns,
			 int64_t end_ns)
{
	const int64_t begin = clocks_local(talk, end, begin_ns);

	return begin < talk->until_ns &&
	       clocks_local(talk, end, end_ns) > talk->since_ns;
}

static void add_host(struct netobs_host *sum, const struct netobs_host *host)
{
	sum->listen_overflows += host->listen_overflows;
	sum->conntrack_drops += host->conntrack_drops;
	sum->udp_buffer_errors += host->udp_buffer_errors;
	sum->neighbour_failures += host->neighbour_failures;
	if (host->carrier_changes)
		memcpy(sum->uplink, host->uplink, sizeof(sum->uplink));
	sum->carrier_changes += host->carrier_changes;
	sum->accept_queue =
		(uint32_t)max_u64(sum->accept_queue, host->accept_queue);
	memcpy(sum->host, host->host, sizeof(sum->host));
}

static void collect_hosts(const struct talk *talk, struct evidence *evidence)
{
	for (uint32_t i = 0; i < talk->diagnosis->hosts.n; i++) {
		const struct kept_host *kept =
			slots_at(&talk->diagnosis->hosts, i);
		const struct netobs_host *host = &kept->host;

		for (int end = 0; end < ENDS; end++) {
			if (!is_host_of(talk, end, kept->key.host))
				continue;
			evidence->has_host[end] = true;
			evidence->missing_points |= host->missing_points;
			memcpy(evidence->sums[end].host, host->host,
			       sizeof(host->host));
			if (is_in_window(talk, end, host->record.time_ns,
					 host->end_ns))
				add_host(&evidence->sums[end], host);
		}
	}
}

/* ---- What arrived at uplinks ------------------------------------------------------------------- */

static uint64_t bytes_of_others(const struct netobs_queue *queue)
{
	uint64_t bytes = queue->amount;

	for (uint32_t i = 0; i < queue->n_shares; i++)
		if (queue->shares[i].is_traced)
			bytes -= min_u64(bytes, queue->shares[i].amount);
	return bytes;
}

static void collect_queues(const struct talk *talk, struct evidence *evidence)
{
	for (uint32_t i = 0; i < talk->diagnosis->queues.n; i++) {
		const struct kept_queue *kept =
			slots_at(&talk->diagnosis->queues, i);
		const struct netobs_queue *queue = &kept->queue;

		for (int end = 0; end < ENDS; end++) {
			bool is_now;

			if (!is_host_of(talk, end, kept->key.host))
				continue;
			evidence->has_queues[end] = true;
			is_now = is_in_window(talk, end, queue->record.time_ns,
					      queue->end_ns);
			if (queue->kind == NETOBS_QUEUE_CPU && is_now)
				evidence->cpu_ns[end] += (int64_t)min_u64(
					queue->waited_ns, INT32_MAX);
			if (queue->kind != NETOBS_QUEUE_UPLINK)
				continue;
			evidence->others[end][is_now] += bytes_of_others(queue);
			evidence->all[end][is_now] += queue->amount;
		}
	}
}

void evidence_collect(const struct talk *talk, struct evidence *evidence)
{
	*evidence = (struct evidence){ 0 };
	collect_hosts(talk, evidence);
	collect_queues(talk, evidence);
}

static double share_of_others(const struct evidence *evidence, int end, int is_now)
{
	return evidence->all[end][is_now] ?
		       (double)evidence->others[end][is_now] /
			       (double)evidence->all[end][is_now] :
		       0;
}

bool evidence_is_full(const struct evidence *evidence, int end)
{
	return share_of_others(evidence, end, 1) > 0.5 &&
	       share_of_others(evidence, end, 1) >
		       share_of_others(evidence, end, 0) + 0.2;
}

/* ---- Drops --------------------------------------------------------------------------------------- */

/* Of classes that are not here, conntrack tells, or nothing but that there was a drop. */
static const uint8_t drop_causes[DROP_CLASSES] = {
	[DROP_CLASS_BUFFER] = NETOBS_CAUSE_RECEIVE_BUFFER,
	[DROP_CLASS_ACCEPT] = NETOBS_CAUSE_ACCEPT,
	[DROP_CLASS_QDISC] = NETOBS_CAUSE_QDISC,
};

uint8_t evidence_drop_cause(const struct evidence *evidence, int end,
			    enum drop_class class)
{
	if (class == DROP_CLASS_HOOK && evidence->sums[end].conntrack_drops)
		return NETOBS_CAUSE_CONNTRACK;
	return drop_causes[class] ?: NETOBS_CAUSE_DROP;
}

/* ---- Who ------------------------------------------------------------------------------------------ */

static bool is_same_share(const struct netobs_queue_share *a,
			  const struct netobs_queue_share *b)
{
	return a->protocol == b->protocol && a->src_port == b->src_port &&
	       a->dst_port == b->dst_port &&
	       !memcmp(a->src, b->src, sizeof(a->src) + sizeof(a->dst)) &&
	       (a->protocol || a->pid == b->pid);
}

/* @list: of LIST_MAX shares */
static void add_share(struct netobs_queue_share *list, uint32_t *n,
		      const struct netobs_queue_share *share)
{
	uint64_t amount;
	uint32_t i = 0;

	while (i < *n && !is_same_share(&list[i], share))
		i++;
	if (i == LIST_MAX)
		return;
	amount = share->amount + (i < *n ? list[i].amount : 0);
	if (i == *n || !list[i].pid)
		list[i] = *share;
	list[i].amount = amount;
	*n += i == *n;
}

static int compare_shares(const void *a, const void *b)
{
	const struct netobs_queue_share *x = a, *y = b;

	return x->amount > y->amount ? -1 : x->amount < y->amount;
}

struct culprits {
	struct netobs_queue_share list[LIST_MAX];
	uint32_t n;
};

static void add_queue(struct netobs_verdict *verdict, struct culprits *culprits,
		      const struct netobs_queue *queue)
{
	verdict->filled += queue->amount;
	verdict->throttled += queue->throttled;
	if (queue->throttled)
		memcpy(verdict->cgroup, queue->cgroup, sizeof(verdict->cgroup));
	if (queue->interface[0])
		memcpy(verdict->interface, queue->interface,
		       sizeof(verdict->interface));
	for (uint32_t i = 0; i < queue->n_shares; i++)
		add_share(culprits->list, &culprits->n, &queue->shares[i]);
}

/* @return the end whose queue it is; ENDS: none. @ret_kind: of the records that tell who filled it */
static int find_queue(const struct evidence *evidence,
		      const struct netobs_verdict *verdict, uint8_t *ret_kind)
{
	const int end = verdict->place == NETOBS_PLACE_SERVER_HOST ? SERVER :
								     CLIENT;

	switch (verdict->cause) {
	case NETOBS_CAUSE_CPU:
		*ret_kind = NETOBS_QUEUE_CPU;
		return end;
	case NETOBS_CAUSE_QDISC:
		*ret_kind = NETOBS_QUEUE_QDISC;
		return end;
	case NETOBS_CAUSE_QUEUE:
		*ret_kind = NETOBS_QUEUE_UPLINK;
		return evidence_is_full(evidence, SERVER) ? SERVER : CLIENT;
	default:
		return ENDS;
	}
}

void evidence_blame(const struct talk *talk, const struct evidence *evidence,
		    struct netobs_verdict *verdict)
{
	struct culprits culprits = { .n = 0 };
	uint64_t named = 0;
	uint8_t kind = 0;
	const int end = find_queue(evidence, verdict, &kind);

	if (verdict->cause == NETOBS_CAUSE_LINK)
		memcpy(verdict->interface,
		       evidence->sums[evidence->sums[CLIENT].carrier_changes ? CLIENT : SERVER]
			       .uplink,
		       sizeof(verdict->interface));
	for (uint32_t i = 0; end < ENDS && i < talk->diagnosis->queues.n; i++) {
		const struct kept_queue *kept =
			slots_at(&talk->diagnosis->queues, i);
		const struct netobs_queue *queue = &kept->queue;

		if (is_host_of(talk, end, kept->key.host) && queue->kind == kind &&
		    is_in_window(talk, end, queue->record.time_ns, queue->end_ns))
			add_queue(verdict, &culprits, queue);
	}
	qsort(culprits.list, culprits.n, sizeof(*culprits.list), compare_shares);
	verdict->n_shares =
		(uint16_t)min_u64(culprits.n, NETOBS_QUEUE_SHARES_MAX);
	for (uint32_t i = 0; i < verdict->n_shares; i++) {
		verdict->shares[i] = culprits.list[i];
		named += culprits.list[i].amount;
	}
	verdict->filled = max_u64(verdict->filled, named);
	verdict->filled_rest = verdict->filled - named;
}
