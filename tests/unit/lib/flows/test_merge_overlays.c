// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Packets that pass a tunnel of this host: one record, and tenants apart. */
#include "lib_merger.h"
#include "lib_test.h"

enum { ENTRIES_MAX = 4 };

/* The underlay, devices of two tunnels, and a port from which packets are routed. */
static const struct world_link links[] = {
	{ .ifindex = 1 },
	{ .ifindex = 2, .vni = 10 },
	{ .ifindex = 3, .vni = 20 },
	{ .ifindex = 4 },
	{ .ifindex = 0 },
};

struct sight_at {
	uint32_t ifindex;
	uint8_t flags;
	uint32_t vni; /* of the tunnel that it is in; 0: none */
	uint64_t packets;
};

static void keep(struct merger *m, const struct sight_at *at)
{
	struct flow_entry entry =
		merger_entry(at->ifindex, at->flags, at->packets, 100, 200);

	entry.key.vni = at->vni;
	entry.key.tunnel = at->vni ? TUNNEL_VXLAN : TUNNEL_NONE;
	entry.key.outer_hash = at->vni ? 77 : 0;
	merger_keep_entry(m, &entry);
}

/* The order of number @n, of all those of @count things. */
static void permute(uint32_t n, uint32_t count, uint32_t *ret_order)
{
	for (uint32_t i = 0; i < count; i++)
		ret_order[i] = i;
	for (uint32_t i = count; i > 1; n /= i, i--) {
		uint32_t at = n % i, other = ret_order[at];

		ret_order[at] = ret_order[i - 1];
		ret_order[i - 1] = other;
	}
}

/* @ret_packets: of each flow, by its VNI / 10 */
static void merge_in_order(const struct sight_at *sights, uint32_t n,
			   uint32_t order, uint64_t ret_packets[4],
			   struct merger *m)
{
	uint32_t at[ENTRIES_MAX];

	permute(order, n, at);
	merger_open_in(m, merger_every_second(), 1, links);
	merger_begin(m, MERGE_FINAL, 1000);
	for (uint32_t i = 0; i < n; i++)
		keep(m, &sights[at[i]]);
	merger_end(m);
	memset(ret_packets, 0, 4 * sizeof(*ret_packets));
	for (uint32_t i = 0; i < m->witness.n_flows; i++) {
		const struct netobs_flow *flow = &m->witness.flows[i].flow;

		assert_int_equal(flow->end_reason, NETOBS_END_FORCED);
		assert_int_equal(flow->bytes, flow->packets * WORLD_BYTES);
		assert_int_equal(flow->l2_bytes, flow->packets * WORLD_L2_BYTES);
		ret_packets[flow->vni / 10] += flow->packets;
	}
}

TEST(flow_through_a_tunnel_is_one)
{
	static const struct sight_at sights[][3] = {
		{ { 4, IN, 0, 5 }, { 2, ON, 0, 5 }, { 1, OUT, 10, 5 } },
		{ { 1, IN, 10, 5 }, { 2, IN, 0, 5 }, { 4, ON, 0, 5 } },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(sights); i++)
		for (uint32_t order = 0; order < 6; order++) {
			const struct netobs_flow *flow;
			uint64_t packets[4];
			struct merger m;

			merge_in_order(sights[i], 3, order, packets, &m);
			merger_assert_record(&m, 1, 5, NETOBS_END_FORCED);
			flow = merger_last_record(&m);
			assert_int_equal(flow->n_points, 3);
			assert_int_equal(flow->tunnel, NETOBS_TUNNEL_VXLAN);
			assert_int_equal(flow->vni, 10);
			merger_close(&m);
		}
}

/* In whatever order they are read, each flow has @expected packets, by its VNI / 10. */
static void assert_flows(const struct sight_at *sights, uint32_t n,
			 const uint64_t expected[4])
{
	uint32_t n_flows = 0;

	for (uint32_t i = 0; i < 4; i++)
		n_flows += expected[i] > 0;
	for (uint32_t order = 0; order < (n == 3 ? 6 : 24); order++) {
		uint64_t packets[4];
		struct merger m;

		merge_in_order(sights, n, order, packets, &m);
		assert_int_equal(m.witness.n_flows, n_flows);
		assert_memory_equal(packets, expected, sizeof(packets));
		merger_close(&m);
	}
}

/* Of each flow, packets by its VNI / 10: that of the tunnel that it entered in. */
TEST(tenants_in_tunnels_stay_apart)
{
	static const struct {
		struct sight_at sights[ENTRIES_MAX];
		uint32_t n;
		uint64_t expected[4];
	} cases[] = {
		{ { { 1, IN, 10, 3 },
		    { 1, IN, 20, 4 },
		    { 2, IN, 0, 3 },
		    { 3, IN, 0, 4 } },
		  4,
		  { [1] = 3, [2] = 4 } },
		{ { { 2, OUT, 0, 3 },
		    { 3, OUT, 0, 4 },
		    { 1, OUT, 10, 3 },
		    { 1, OUT, 20, 4 } },
		  4,
		  { [1] = 3, [2] = 4 } },
		/* Of one, nothing was seen in the tunnel: it may have been in a further one. */
		{ { { 1, IN, 10, 3 }, { 2, IN, 0, 3 }, { 3, IN, 0, 4 } },
		  3,
		  { [0] = 4, [1] = 3 } },
		/* A flow from tunnel to tunnel is one. */
		{ { { 1, IN, 10, 5 },
		    { 2, IN, 0, 5 },
		    { 3, ON, 0, 5 },
		    { 1, OUT, 20, 5 } },
		  4,
		  { [1] = 5 } },
		/* The tunnel of others. */
		{ { { 1, IN, 30, 3 }, { 4, ON, 30, 3 }, { 4, IN, 0, 4 } },
		  3,
		  { [0] = 4, [3] = 3 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_flows(cases[i].sights, cases[i].n, cases[i].expected);
}
