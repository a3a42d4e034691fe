// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What merging makes of flows while memory is refused: each packet is in a record or lost.
 * NETOBS_TEST_SEED repeats a run.
 */
#include "lib_merger.h"
#include "lib_seed.h"
#include "lib_test.h"

enum {
	ROUNDS = 60,
	FLOWS = 6,
	ENTRIES = 60,
	CALLS_MAX = 10 * ENTRIES, /* an entry asks for memory a few times at most */
	INTERFACES = 4,
	POINTS = 2 * INTERFACES
};

/* ---- Memory that is refused ----------------------------------------------------- */

static int calls_left = -1; /* -1: no call is refused */

static bool is_refused(void)
{
	return calls_left >= 0 && calls_left-- == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_reallocarray(void *bytes, size_t n, size_t size);
void *__wrap_reallocarray(void *bytes, size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
	return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_reallocarray(void *bytes, size_t n, size_t size)
{
	return is_refused() ? NULL : __real_reallocarray(bytes, n, size);
}

/* The witness has the memory that it takes. */
static void on_flow(const struct netobs_record *record, void *user)
{
	const int left = calls_left;

	calls_left = -1;
	witness_on_flow(record, user);
	calls_left = left;
}

/* ---- Flows -------------------------------------------------------------------- */

/* By flow and interface: the packets of each point. */
struct truth {
	uint64_t seen[FLOWS][INTERFACES];
};

static uint32_t next(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* Odd ones come in by interface 1. Others are translated: they are seen leaving only. */
static bool enters(uint32_t flow, uint32_t interface)
{
	return flow & 1 && interface == 1;
}

/* With tags that differ from point to point, or none. */
static struct flow_entry entry_of(uint32_t *seed, struct truth *truth)
{
	const uint32_t flow = next(seed, FLOWS),
		       at = 1 + next(seed, INTERFACES - 1);
	struct flow_key key = world_key(0, at, !enters(flow, at));
	const int64_t first_ns = next(seed, 900) * NSEC_PER_MSEC;
	const uint64_t packets = 1 + next(seed, 9);

	key.src_port = flow;
	if (flow % 3 == 0)
		world_join_ends(&key);
	if (!enters(flow, at))
		key.flags |= KEY_AGAIN;
	if (next(seed, 3))
		key.vlan = VLAN_PRESENT | at;
	truth->seen[flow][at] += packets;
	return world_entry(&key, packets, first_ns, first_ns + NSEC_PER_MSEC);
}

/* A packet passes a point once. */
static uint64_t packets_of(const uint64_t seen[INTERFACES], uint32_t flow)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < INTERFACES; i++)
		most = max_u64(most, seen[i]);
	return flow & 1 ? seen[1] : most;
}

/* What is in no record. */
static uint64_t missing(const struct truth *truth, const struct witness *witness)
{
	uint64_t reported[FLOWS] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < witness->n_flows; i++)
		reported[witness->flows[i].flow.src_port] +=
			witness->flows[i].flow.packets;
	for (uint32_t i = 0; i < FLOWS; i++) {
		uint64_t packets = packets_of(truth->seen[i], i);

		sum += packets - min_u64(packets, reported[i]);
	}
	return sum;
}

/* Returns whether memory was refused. */
static bool try(uint32_t seed, int refused)
{
	static const struct world_link links[] = {
		{ .ifindex = 1 }, { .ifindex = 2 }, { .ifindex = 3 },
		{ .ifindex = 4 }, { .ifindex = 5 }, { .ifindex = 6 },
		{ .ifindex = 0 }
	};
	struct truth truth = { 0 };
	struct merger m;

	merger_open_in(&m, merger_every_second(), 1, links);
	m.merge.options.on_record = on_flow;
	calls_left = refused;
	merger_begin(&m, MERGE_FINAL, 1000);
	for (int i = 0; i < ENTRIES; i++) {
		struct flow_entry entry = entry_of(&seed, &truth);

		merger_keep_entry(&m, &entry);
	}
	merger_end(&m);
	assert_true(missing(&truth, &m.witness) <=
		    m.merge.pending.packets + m.merge.lost.packets);
	refused = calls_left;
	calls_left = -1;
	merger_close(&m);
	return refused < 0;
}

TEST(packets_are_reported_or_lost)
{
	const uint32_t seed = test_seed();
	int most = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		int refused = 0;

		while (try(seed + round, refused))
			assert_true(++refused < CALLS_MAX);
		most = refused > most ? refused : most;
	}
	assert_true(most > 2 * FLOWS);
}
