// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "queues.h"

#include "base/util.h"
#include "engine/map.h"
#include "queue_sums.h"
#include "traced.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

enum {
	LEFT_PERIOD = 16,    /* buckets of a record of a queue */
	ARRIVED_PERIOD = 96, /* buckets of a record of an uplink */
	ARRIVED_BEFORE = 10, /* buckets before a packet that are looked at */
	ARRIVED_LATE =
		64, /* buckets after which events of that time have been read */
};

/* Of a quarter of a second: packets that leave a queue at once waited, too, but for no one else. */
#define WAITED_MIN_NS NSEC_PER_MSEC

#define UNUSED_NS (10ULL * NSEC_PER_SEC)

struct uplink {
	uint32_t netns, ifindex; /* 0: none */
	char name[16];
	uint64_t noted_ns;
	uint64_t wanted[UPLINK_BUCKETS / 64]; /* bits of buckets */
};

struct queues {
	const struct trace_programs *programs;
	const struct clock *clock;
	queue_record_fn *on_queue;
	void *ctx;
	struct queue_state *states;	 /* mapped: QUEUES of them */
	const struct queue_bucket *left; /* mapped */
	struct queue_uplinks *watched;	 /* mapped */
	struct queue_bucket *of_cpus;	 /* room for a bucket of each CPU */
	int n_cpus;
	int arrived_fd, senders_fd; /* the set's */
	uint64_t next_left,
		next_arrived; /* numbers of the buckets of the next records */
	struct uplink uplinks[UPLINKS];
	struct queue_sums sums;
	struct queue_owners owners;
};

/* ---- Records ------------------------------------------------------------------------ */

static bool is_traced(const struct queues *queues, const struct queue_flow *flow)
{
	const struct trace_report ends = { .src = flow->src,
					   .dst = flow->dst,
					   .src_port = flow->src_port,
					   .dst_port = flow->dst_port,
					   .proto = flow->proto };
	const struct trace_tuple tuple = traced_tuple(&ends);
	const uint64_t id = trace_programs_find(queues->programs, &tuple);

	return id && trace_programs_conn(queues->programs, id)->is_used ==
			     TRACE_CHOSEN;
}

/* @return false: the flow is not known any more */
static bool fill_share(struct queues *queues, struct netobs_queue_share *share)
{
	const uint32_t id = share->pid;
	const struct queue_flow *flow;
	struct queue_sender sender;

	if (bpf_map_lookup_elem(queues->senders_fd, &id, &sender))
		return false;
	flow = &sender.flow;
	memcpy(share->src, flow->src.bytes, sizeof(share->src));
	memcpy(share->dst, flow->dst.bytes, sizeof(share->dst));
	share->src_port = flow->src_port;
	share->dst_port = flow->dst_port;
	share->protocol = flow->proto;
	share->is_traced = is_traced(queues, flow);
	queue_owners_name(&queues->owners, queues->programs, id, &sender, share);
	return true;
}

static void fill_shares(struct queues *queues, struct netobs_queue *queue)
{
	const uint32_t n_found = queue_sums_fill(&queues->sums, queue);

	queue->n_shares = 0;
	for (uint32_t i = 0; i < n_found; i++) {
		struct netobs_queue_share share = queue->shares[i];

		queue->shares[i] = (struct netobs_queue_share){ 0 };
		if (!fill_share(queues, &share))
			continue;
		queue->shares[queue->n_shares++] = share;
		queue->rest -= share.amount;
	}
}

/* Deliver the sums of @n buckets from number @first on, each of a time of 2^@shift ns. */
static void deliver(struct queues *queues, uint8_t kind, uint64_t first,
		    uint32_t n, uint32_t shift, uint32_t netns,
		    uint32_t ifindex, const char name[16])
{
	struct netobs_queue queue = {
		.record = { .sz = sizeof(queue),
			    .type = NETOBS_RECORD_QUEUE,
			    .time_ns = clock_to_wall(
				    queues->clock, (int64_t)(first << shift)) },
		.end_ns = clock_to_wall(queues->clock,
					(int64_t)((first + n) << shift)),
		.waited_ns = min_u64(queues->sums.waited_ns, (uint64_t)n << shift),
		.ifindex = ifindex,
		.netns_inode = netns,
		.kind = kind,
	};

	memcpy(queue.interface, name, sizeof(queue.interface));
	fill_shares(queues, &queue);
	queues->on_queue(&queue, queues->ctx);
}

/* ---- Queues ------------------------------------------------------------------------- */

static void sweep_queue(struct queues *queues, uint32_t place, uint64_t first)
{
	const struct queue_state *state = &queues->states[place];

	queue_sums_clear(&queues->sums);
	for (uint64_t number = first; number < first + LEFT_PERIOD; number++) {
		const struct queue_bucket *bucket =
			&queues->left[place * QUEUE_BUCKETS + number % QUEUE_BUCKETS];

		if (bucket->number == number)
			queue_sums_add(&queues->sums, bucket);
	}
	if (queues->sums.waited_ns >= WAITED_MIN_NS)
		deliver(queues, NETOBS_QUEUE_QDISC, first, LEFT_PERIOD,
			QUEUE_SHIFT, state->netns, state->ifindex,
			state->interface);
}

/* Programs that still write to a bucket of the period end before the next bucket does. */
static void sweep_queues(struct queues *queues, uint64_t now_ns)
{
	const uint64_t first = queues->next_left;

	if (now_ns >> QUEUE_SHIFT <= first + LEFT_PERIOD)
		return;
	queues->next_left = (now_ns >> QUEUE_SHIFT) / LEFT_PERIOD * LEFT_PERIOD;
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct queue_state *state = &queues->states[i];

		if (!state->id)
			continue;
		for (uint64_t at = first; at < queues->next_left;
		     at += LEFT_PERIOD)
			sweep_queue(queues, i, at);
		if (now_ns - min_u64(now_ns, state->used_ns) > UNUSED_NS)
			__atomic_store_n(&state->id, 0, __ATOMIC_RELEASE);
	}
}

/* ---- Uplinks ------------------------------------------------------------------------ */

static struct uplink *find_uplink(const struct queues *queues, uint32_t netns,
				  uint32_t ifindex)
{
	for (uint32_t i = 0; i < UPLINKS; i++) {
		const struct uplink *uplink = &queues->uplinks[i];

		if (uplink->ifindex == ifindex && uplink->netns == netns)
			return (struct uplink *)uplink;
	}
	return NULL;
}

static struct uplink *add_uplink(struct queues *queues, uint32_t netns,
				 uint32_t ifindex, const char name[16])
{
	struct uplink *uplink = queues->uplinks;
	struct queue_uplink *watched;

	for (uint32_t i = 1; i < UPLINKS; i++)
		if (queues->uplinks[i].noted_ns < uplink->noted_ns)
			uplink = &queues->uplinks[i];
	*uplink = (struct uplink){ .netns = netns, .ifindex = ifindex };
	memcpy(uplink->name, name, sizeof(uplink->name));
	watched = &queues->watched->list[uplink - queues->uplinks];
	watched->ifindex = 0; /* programs look at it first */
	watched->netns = netns;
	__atomic_store_n(&watched->ifindex, ifindex, __ATOMIC_RELEASE);
	return uplink;
}

void queues_note_uplink(struct queues *queues, uint32_t netns, uint32_t ifindex,
			const char name[16])
{
	struct uplink *uplink = find_uplink(queues, netns, ifindex);

	if (!ifindex)
		return;
	if (!uplink)
		uplink = add_uplink(queues, netns, ifindex, name);
	uplink->noted_ns = (uint64_t)clock_boot_ns();
}

bool queues_is_uplink(const struct queues *queues, uint32_t netns,
		      uint32_t ifindex)
{
	return ifindex && find_uplink(queues, netns, ifindex);
}

void queues_note(struct queues *queues, const struct netobs_trace_event *event,
		 int64_t boot_ns)
{
	const uint64_t number = (uint64_t)boot_ns >> UPLINK_SHIFT;
	struct uplink *uplink;

	if (event->point != NETOBS_TRACE_RECEIVE || !event->ifindex ||
	    number < queues->next_arrived + ARRIVED_BEFORE)
		return;
	uplink = find_uplink(queues, event->netns_inode, event->ifindex);
	for (uint64_t i = number - ARRIVED_BEFORE; uplink && i <= number; i++)
		uplink->wanted[i % UPLINK_BUCKETS / 64] |= 1ULL << i % 64;
}

/* A bucket that no packet has come to has the number of an earlier one. */
static void add_arrived(struct queues *queues, uint32_t place, uint64_t number)
{
	const uint32_t key = place * UPLINK_BUCKETS + number % UPLINK_BUCKETS;

	queues->sums.waited_ns += 1ULL << UPLINK_SHIFT;
	if (bpf_map_lookup_elem(queues->arrived_fd, &key, queues->of_cpus))
		return;
	for (int i = 0; i < queues->n_cpus; i++)
		if (queues->of_cpus[i].number == number)
			queue_sums_add(&queues->sums, &queues->of_cpus[i]);
}

static void sweep_uplink(struct queues *queues, uint32_t place, uint64_t first)
{
	struct uplink *uplink = &queues->uplinks[place];

	queue_sums_clear(&queues->sums);
	for (uint64_t number = first; number < first + ARRIVED_PERIOD; number++) {
		uint64_t *bits = &uplink->wanted[number % UPLINK_BUCKETS / 64];
		const uint64_t bit = 1ULL << number % 64;

		if (*bits & bit)
			add_arrived(queues, place, number);
		*bits &= ~bit;
	}
	if (queues->sums.bytes)
		deliver(queues, NETOBS_QUEUE_UPLINK, first, ARRIVED_PERIOD,
			UPLINK_SHIFT, uplink->netns, uplink->ifindex,
			uplink->name);
}

static void sweep_uplinks(struct queues *queues, uint64_t now_ns)
{
	const uint64_t number = now_ns >> UPLINK_SHIFT;

	/* This process was late: programs have begun to use the buckets again. */
	if (number > queues->next_arrived + UPLINK_BUCKETS) {
		queues->next_arrived = number - UPLINK_BUCKETS / 2;
		for (uint32_t i = 0; i < UPLINKS; i++)
			memset(queues->uplinks[i].wanted, 0,
			       sizeof(queues->uplinks[i].wanted));
	}
	while (number >= queues->next_arrived + ARRIVED_PERIOD + ARRIVED_LATE) {
		for (uint32_t i = 0; i < UPLINKS; i++)
			sweep_uplink(queues, i, queues->next_arrived);
		queues->next_arrived += ARRIVED_PERIOD;
	}
}

/* ---- Use ---------------------------------------------------------------------------- */

void queues_sweep(struct queues *queues, int64_t now_ns)
{
	sweep_queues(queues, (uint64_t)now_ns);
	sweep_uplinks(queues, (uint64_t)now_ns);
}

static int map_all(struct queues *queues)
{
	const struct program_set *set = &queues->programs->set;

	queues->n_cpus = libbpf_num_possible_cpus();
	if (queues->n_cpus < 0)
		return queues->n_cpus;
	queues->states = program_set_mmap(set, "trace_queues",
					  QUEUES * sizeof(*queues->states));
	queues->left =
		program_set_mmap(set, "trace_left",
				 QUEUES * QUEUE_BUCKETS * sizeof(*queues->left));
	queues->watched =
		program_set_mmap(set, "trace_uplinks", sizeof(*queues->watched));
	queues->of_cpus =
		calloc((size_t)queues->n_cpus, sizeof(*queues->of_cpus));
	queues->arrived_fd = program_set_map_fd(set, "trace_arrived");
	queues->senders_fd = program_set_map_fd(set, "trace_senders");
	if (!queues->states || !queues->left || !queues->watched)
		return -errno;
	return queues->of_cpus ? 0 : -ENOMEM;
}

int queues_open(const struct trace_programs *programs, const struct clock *clock,
		queue_record_fn *on_queue, void *ctx, struct queues **ret_queues)
{
	const uint64_t now_ns = (uint64_t)clock_boot_ns();
	struct queues *queues = calloc(1, sizeof(*queues));
	int err;

	if (!queues)
		return -ENOMEM;
	queues->programs = programs;
	queues->clock = clock;
	queues->on_queue = on_queue;
	queues->ctx = ctx;
	queues->next_left = (now_ns >> QUEUE_SHIFT) / LEFT_PERIOD * LEFT_PERIOD;
	queues->next_arrived = now_ns >> UPLINK_SHIFT;
	err = map_all(queues);
	if (err)
		queues_close(queues);
	else
		*ret_queues = queues;
	return err;
}

void queues_close(struct queues *queues)
{
	if (!queues)
		return;
	map_munmap(queues->states, QUEUES * sizeof(*queues->states));
	map_munmap(queues->left, QUEUES * QUEUE_BUCKETS * sizeof(*queues->left));
	map_munmap(queues->watched, sizeof(*queues->watched));
	free(queues->of_cpus);
	queue_sums_free(&queues->sums);
	queue_owners_free(&queues->owners);
	free(queues);
}
