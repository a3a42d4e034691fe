// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The list of interfaces, and how they are stacked. */
#include "lib_test.h"
#include "host/netif.h"

/* Every number from 1 to 100, in an order that is not sorted. */
static void fill(struct netifs *netifs)
{
	for (uint32_t i = 0; i < 100; i++) {
		struct netif *netif = netifs_ensure(netifs, i * 37 % 101 + 1);

		assert_non_null(netif);
		netif->vlan_id = netif->ifindex;
	}
}

TEST(netifs_stay_sorted_and_are_found)
{
	struct netifs netifs = { 0 };

	assert_null(netifs_find(&netifs, 1));
	fill(&netifs);
	assert_null(netifs.items[0].hooks);
	fill(&netifs); /* they are there */
	assert_int_equal(netifs.count, 100);
	for (uint32_t i = 1; i < netifs.count; i++)
		assert_true(netifs.items[i - 1].ifindex < netifs.items[i].ifindex);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t ifindex = i * 37 % 101 + 1;
		struct netif *netif = netifs_find(&netifs, ifindex);

		assert_non_null(netif);
		assert_int_equal(netif->vlan_id, ifindex);
	}
	assert_null(netifs_find(&netifs, 0));
	assert_null(netifs_find(&netifs, 1000));
	netifs_done(&netifs);
	assert_int_equal(netifs.count, 0);
}

TEST(netifs_sweep_forgets_those_gone_long_ago)
{
	struct netifs netifs = { 0 };

	netifs_ensure(&netifs, 1)->gone_ns = 0; /* there */
	netifs_ensure(&netifs, 2)->gone_ns = 99;
	netifs_ensure(&netifs, 3)->gone_ns = 100;
	netifs_ensure(&netifs, 4)->gone_ns = 101;
	netifs_ensure(&netifs, 5)->gone_ns = 1;
	assert_true(netifs_sweep(&netifs, 100));
	assert_int_equal(netifs.count, 3);
	assert_non_null(netifs_find(&netifs, 1));
	assert_null(netifs_find(&netifs, 2));
	assert_non_null(netifs_find(&netifs, 3));
	assert_non_null(netifs_find(&netifs, 4));
	assert_null(netifs_find(&netifs, 5));
	netifs_done(&netifs);
}

/* One interface and where it must end up; ifindex 0 ends a list. */
struct stacked {
	uint32_t ifindex, master, lower;
	uint32_t stack, level;
};

static const struct {
	const char *name;
	struct stacked links[10];
} stackings[] = {
	{ "alone", { { 1, 0, 0, 1, 0 }, { 2, 0, 0, 2, 0 }, { 3, 0, 0, 3, 0 } } },
	{ "bridge with two ports",
	  { { 2, 5, 0, 2, 0 }, { 3, 5, 0, 2, 0 }, { 5, 0, 0, 2, 1 } } },
	{ "bridge made before its ports",
	  { { 1, 0, 0, 1, 1 }, { 2, 1, 0, 1, 0 }, { 3, 1, 0, 1, 0 } } },
	{ "VLAN device", { { 2, 0, 0, 2, 0 }, { 3, 0, 2, 2, 1 } } },
	{ "VLAN device numbered below its lower",
	  { { 2, 0, 9, 2, 1 }, { 9, 0, 0, 2, 0 } } },
	{ "VLAN in VLAN",
	  { { 2, 0, 0, 2, 0 }, { 3, 0, 2, 2, 1 }, { 4, 0, 3, 2, 2 } } },
	{ "two macvlans beside each other",
	  { { 2, 0, 0, 2, 0 }, { 3, 0, 2, 2, 1 }, { 4, 0, 2, 2, 1 } } },
	{ "slaves, bond, VLAN on the bond, bridge over it",
	  { { 1, 3, 0, 1, 0 },
	    { 2, 3, 0, 1, 0 },
	    { 3, 0, 0, 1, 1 },
	    { 4, 5, 3, 1, 2 },
	    { 5, 0, 0, 1, 3 } } },
	{ "the same, numbered the other way round",
	  { { 1, 0, 0, 1, 3 },
	    { 2, 1, 3, 1, 2 },
	    { 3, 0, 0, 1, 1 },
	    { 4, 3, 0, 1, 0 },
	    { 5, 3, 0, 1, 0 } } },
	{ "ports of different depth",
	  { { 1, 9, 0, 1, 0 },
	    { 2, 0, 0, 1, 0 },
	    { 3, 9, 2, 1, 1 },
	    { 9, 0, 0, 1, 2 } } },
	{ "two stacks",
	  { { 1, 5, 0, 1, 0 },
	    { 2, 6, 0, 2, 0 },
	    { 5, 0, 0, 1, 1 },
	    { 6, 0, 0, 2, 1 } } },
	{ "master and lower that are not there",
	  { { 1, 77, 0, 1, 0 }, { 2, 0, 78, 2, 0 } } },
};

static void build(struct netifs *netifs, const struct stacked *links)
{
	for (; links->ifindex; links++) {
		struct netif *netif = netifs_ensure(netifs, links->ifindex);

		netif->master = links->master;
		netif->type = links->lower ? LINK_TYPE_VLAN : LINK_TYPE_OTHER;
		netif->link = links->lower;
	}
}

TEST(netifs_restack_finds_stacks_and_levels)
{
	for (size_t i = 0; i < ARRAY_SIZE(stackings); i++) {
		struct netifs netifs = { 0 };

		build(&netifs, stackings[i].links);
		netifs_restack(&netifs);
		for (const struct stacked *s = stackings[i].links; s->ifindex;
		     s++) {
			const struct netif *netif =
				netifs_find(&netifs, s->ifindex);

			if (netif->stack != s->stack || netif->level != s->level)
				fail_msg("%s: %u is in stack %u, level %u",
					 stackings[i].name, s->ifindex,
					 netif->stack, netif->level);
		}
		netifs_done(&netifs);
	}
}

TEST(netifs_restack_again_takes_stacks_apart)
{
	static const struct stacked links[] = { { 1, 3, 0, 0, 0 },
						{ 2, 3, 0, 0, 0 },
						{ 3, 0, 0, 0, 0 },
						{ 0, 0, 0, 0, 0 } };
	struct netifs netifs = { 0 };

	build(&netifs, links);
	netifs_restack(&netifs);
	assert_int_equal(netifs_find(&netifs, 2)->stack, 1);
	netifs_find(&netifs, 2)->master = 0;
	netifs_restack(&netifs);
	assert_int_equal(netifs_find(&netifs, 1)->stack, 1);
	assert_int_equal(netifs_find(&netifs, 2)->stack, 2);
	assert_int_equal(netifs_find(&netifs, 3)->stack, 1);
	assert_int_equal(netifs_find(&netifs, 3)->level, 1);
	netifs_done(&netifs);
}

/* Flows of the time before are still to come; after a sweep there are none. */
TEST(netifs_former_stacks_last_until_the_sweep)
{
	struct netifs netifs = { 0 };
	struct netif *netif;

	netifs_ensure(&netifs, 9);
	netif = netifs_ensure(&netifs, 1);
	netif->former_master = 9;
	netif->former_ns = 100;
	netifs_restack(&netifs);
	assert_int_equal(netifs_find(&netifs, 9)->stack, 1);
	assert_int_equal(netifs_find(&netifs, 9)->level, 1);
	assert_false(netifs_sweep(&netifs, 100));
	assert_true(netifs_sweep(&netifs, 101));
	netifs_restack(&netifs);
	assert_int_equal(netifs_find(&netifs, 9)->stack, 9);
	assert_int_equal(netifs_find(&netifs, 9)->level, 0);
	netifs_done(&netifs);
}

/* Only the lower interface of a VLAN or macvlan device carries its packets. */
TEST(netif_has_a_lower_of_its_own_packets)
{
	static const struct {
		enum link_type type;
		int32_t nsid;
		uint32_t lower;
	} cases[] = {
		{ LINK_TYPE_VLAN, NSID_SAME, 5 },
		{ LINK_TYPE_MACVLAN, NSID_SAME, 5 },
		{ LINK_TYPE_VLAN, 0, 0 }, /* elsewhere */
		{ LINK_TYPE_PAIR, NSID_SAME, 0 },
		{ LINK_TYPE_OTHER, NSID_SAME, 0 }, /* a tunnel */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netif netif = { .type = cases[i].type,
				       .link = 5,
				       .link_nsid = cases[i].nsid };

		assert_int_equal(netif_lower(&netif), cases[i].lower);
	}
}

TEST(netifs_restack_ends_with_cycles)
{
	static const struct stacked cycles[][4] = {
		{ { 1, 1, 0, 0, 0 } },
		{ { 1, 0, 1, 0, 0 } },
		{ { 1, 0, 2, 0, 0 }, { 2, 0, 1, 0, 0 } },
		{ { 1, 2, 2, 0, 0 }, { 2, 0, 0, 0, 0 } },
		{ { 1, 2, 0, 0, 0 }, { 2, 3, 0, 0, 0 }, { 3, 1, 0, 0, 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cycles); i++) {
		struct netifs netifs = { 0 };

		build(&netifs, cycles[i]);
		netifs_restack(&netifs);
		for (uint32_t k = 0; k < netifs.count; k++) {
			assert_int_equal(netifs.items[k].stack, 1);
			assert_true(netifs.items[k].level <= 8);
		}
		netifs_done(&netifs);
	}
}
