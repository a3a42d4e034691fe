// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The list of origins in the kernel: as given, however many share a slot. */
#include "lib_seed.h"
#include "lib_test.h"
#include "engine/store.h"

#include <bpf/bpf.h>

enum { NAMESPACES = 3, IFINDEXES = 3 * ORIGIN_SLOTS, ROUNDS = 20 };

static const struct netobs_opts few_flows = { .max_flows = 1000 };
static const struct store_options small = { .opts = &few_flows };

/* As src/bpf/track/packet.h looks it up. */
static bool is_there(const struct origins *origins, uint16_t netns,
		     uint32_t ifindex)
{
	uint64_t origin = origin_of(netns, ifindex);
	uint64_t found = origins->slots[origin_slot(netns, ifindex)];
	uint8_t value;

	if ((found & ~ORIGIN_MORE) == origin)
		return true;
	return found & ORIGIN_MORE &&
	       !bpf_map_lookup_elem(origins->more_fd, &origin, &value);
}

static void give(struct origins *origins, bool wanted[NAMESPACES][IFINDEXES])
{
	uint32_t in_thousand = test_below(60);

	origins_begin(origins);
	for (int netns = 0; netns < NAMESPACES; netns++) {
		for (uint32_t i = 1; i < IFINDEXES; i++) {
			wanted[netns][i] = test_below(1000) < in_thousand;
			if (wanted[netns][i])
				origins_put(origins, netns, i);
		}
	}
	origins_end(origins);
}

TEST(origins_are_those_given_last)
{
	static bool wanted[NAMESPACES][IFINDEXES];
	const struct log silent = { 0 };
	uint32_t shared = 0;
	struct store store;

	assert_int_equal(store_open(&store, &small, &silent), 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		give(&store.origins, wanted);
		shared += store.origins.n_more;
		for (int netns = 0; netns < NAMESPACES; netns++)
			for (uint32_t i = 1; i < IFINDEXES; i++)
				if (is_there(&store.origins, netns, i) !=
				    wanted[netns][i])
					fail_msg("round %u: %u in netns %u is %s",
						 round, i, netns,
						 wanted[netns][i] ? "missing" :
								    "left");
	}
	assert_true(shared > 0);
	store_close(&store);
}
