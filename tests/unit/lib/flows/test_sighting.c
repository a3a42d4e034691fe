// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the observations of one flow have in common: its key. */
#include "bpf/types.h"
#include "lib_test.h"
#include "lib_world.h"
#include "flows/sighting.h"

#define TAG(id) ((id) | VLAN_PRESENT)

static const struct world_link vlan_links[] = {
	{ .ifindex = 1 },
	VLAN(2, 1, 10), /* if1.10 */
	VLAN(3, 2, 20), /* if1.10.20 */
	VLAN(4, 3, 30), /* if1.10.20.30 */
	MACVLAN(5, 1),
	VLAN(6, 5, 40), /* on the macvlan */
	PORT(7, 9),	/* a slave */
	{ .ifindex = 9, .type = LINK_TYPE_BOND },
	VLAN(10, 9, 50),  /* on the bond */
	VLAN(11, 77, 60), /* its lower is not known */
	VLAN(12, 13, 70), /* a cycle */
	MACVLAN(13, 12),
	{ .ifindex = 0 },
};

TEST(key_has_the_tags_that_devices_take_off)
{
	static const struct {
		uint32_t ifindex;
		uint16_t vlan, outer; /* in the packet */
		uint16_t expected_vlan, expected_outer;
	} tags[] = {
		{ 1, 0, 0, 0, 0 },
		{ 1, TAG(10), 0, TAG(10), 0 },
		{ 1, TAG(0), 0, TAG(0), 0 },
		{ 2, 0, 0, TAG(10), 0 },
		{ 1, TAG(20), TAG(10), TAG(20), TAG(10) },
		{ 2, TAG(20), 0, TAG(20), TAG(10) },
		{ 3, 0, 0, TAG(20), TAG(10) },
		{ 4, 0, 0, TAG(30), TAG(10) }, /* outermost, as in the frame */
		{ 3, TAG(30), 0, TAG(30), TAG(10) },
		{ 5, 0, 0, 0, 0 },
		{ 6, 0, 0, TAG(40), 0 },
		{ 7, TAG(50), 0, TAG(50), 0 },
		{ 9, TAG(50), 0, TAG(50), 0 },
		{ 10, 0, 0, TAG(50), 0 },
		{ 11, 0, 0, TAG(60), 0 },
		{ 12, 0, 0, TAG(70), TAG(70) }, /* a cycle */
		{ 99, TAG(5), 0, TAG(5), 0 },
	};
	struct host host;

	world_build(&host, 1, vlan_links);
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
		struct flow_key key = world_key(0, tags[i].ifindex, false),
				common;

		key.vlan = tags[i].vlan;
		key.outer_vlan = tags[i].outer;
		sighting_key(&key, &host, &common);
		if (common.vlan != tags[i].expected_vlan ||
		    common.outer_vlan != tags[i].expected_outer)
			fail_msg("case %zu: vlan %x, outer %x", i, common.vlan,
				 common.outer_vlan);
	}
	host_done(&host);
}

TEST(key_is_the_same_where_namespaces_are_joined)
{
	static const struct world_link links[] = {
		{ .ifindex = 1 },
		PEER(2, 0, 3, 1),
		PEER(3, 1, 2, 0),
		{ .ifindex = 77, .netns = 1 },
		{ .ifindex = 5, .netns = 2 },
		{ .ifindex = 6, .type = LINK_TYPE_LOOPBACK },
		{ .ifindex = 6, .netns = 1, .type = LINK_TYPE_LOOPBACK },
		{ .ifindex = 0 },
	};
	static const struct {
		uint16_t netns;
		uint32_t ifindex;
		bool same;
	} cases_of_second[] = {
		{ 0, 2, true },	 { 1, 77, true }, { 1, 3, true },
		{ 2, 5, false }, { 0, 6, false }, { 1, 6, false },
	};
	struct flow_key first = world_key(0, 1, false), second, a, b;
	struct host host;

	world_build(&host, 3, links);
	first.flags |= KEY_IPV6;
	sighting_key(&first, &host, &a);
	assert_int_equal(a.flags, KEY_IPV6);
	for (size_t i = 0; i < ARRAY_SIZE(cases_of_second); i++) {
		second = world_key(cases_of_second[i].netns,
				   cases_of_second[i].ifindex, true);
		second.flags |= KEY_IPV6 | KEY_AGAIN;
		sighting_key(&second, &host, &b);
		if (!memcmp(&a, &b, sizeof(a)) != cases_of_second[i].same)
			fail_msg("case %zu", i);
	}
	second.src_port++;
	sighting_key(&second, &host, &b);
	assert_memory_not_equal(&a, &b, sizeof(a));
	host_done(&host);
}

/*
 * In the tunnel, at its device and where a bridge joins others to it. Not behind routes, at a
 * bridge of two tunnels, but of two devices of one, or where the tunnel is only forwarded.
 */
TEST(key_has_the_overlay_of_where_it_was_seen)
{
	static const struct world_link links[] = {
		{ .ifindex = 1 },
		{ .ifindex = 2, .master = 9, .vni = 10, .link_netns = 0 },
		PORT(3, 9),
		{ .ifindex = 9, .type = LINK_TYPE_BRIDGE },
		{ .ifindex = 4, .peer = 5, .link_netns = 1, .master = 9 },
		{ .ifindex = 5, .netns = 1, .peer = 4 },
		{ .ifindex = 6, .vni = 20, .master = 8 },
		{ .ifindex = 7, .vni = 30, .master = 8 },
		PORT(11, 8),
		{ .ifindex = 8, .type = LINK_TYPE_BRIDGE },
		{ .ifindex = 12, .netns = 2 },
		{ .ifindex = 13, .vni = 50, .master = 15 },
		{ .ifindex = 14, .vni = 50, .master = 15 },
		{ .ifindex = 15, .type = LINK_TYPE_BRIDGE },
		PORT(16, 15),
		{ .ifindex = 0 },
	};
	static const struct {
		uint16_t netns;
		uint32_t ifindex, vni; /* that the packet was in */
		uint32_t expected;
		bool is_overlay;
	} sights[] = {
		{ 0, 1, 0, 0, false },	 { 0, 1, 10, 10, true },
		{ 0, 2, 0, 10, true },	 { 0, 3, 0, 10, true },
		{ 0, 9, 0, 10, true },	 { 0, 4, 0, 10, true },
		{ 1, 5, 0, 10, true },	 { 1, 5, 10, 10, true },
		{ 0, 1, 40, 40, false }, { 0, 6, 0, 20, true },
		{ 0, 7, 0, 30, true },	 { 0, 11, 0, 0, false },
		{ 0, 8, 0, 0, false },	 { 2, 12, 10, 10, false },
		{ 0, 15, 0, 50, true },	 { 0, 16, 0, 50, true },
	};
	struct host host;

	world_build(&host, 3, links);
	for (size_t i = 0; i < ARRAY_SIZE(sights); i++) {
		struct flow_key key = world_key(sights[i].netns,
						sights[i].ifindex, false),
				common;

		key.tunnel = sights[i].vni ? TUNNEL_VXLAN : TUNNEL_NONE;
		key.vni = sights[i].vni;
		key.outer_hash = sights[i].vni ? 77 : 0;
		sighting_key(&key, &host, &common);
		assert_int_equal(common.vni, sights[i].expected);
		assert_int_equal(common.tunnel,
				 sights[i].expected ? TUNNEL_VXLAN : TUNNEL_NONE);
		assert_int_equal(!!(common.flags & FLOW_KEY_OVERLAY),
				 sights[i].is_overlay);
		assert_int_equal(common.outer_hash,
				 sights[i].is_overlay ? 0 : key.outer_hash);
	}
	host_done(&host);
}

/* An entry may be from before or after the change: its flow decides. */
TEST(no_sight_is_certain_while_interfaces_come_and_go)
{
	static const struct world_link links[] = { { .ifindex = 1 },
						   { .ifindex = 2 },
						   { .ifindex = 0 } };
	static const struct {
		uint32_t ifindex;
		uint8_t flags;
		enum sight sight;
	} cases[] = {
		{ 1, 0, SIGHT_FIRST },
		{ 2, KEY_EGRESS, SIGHT_FIRST },
		{ 2, KEY_EGRESS | KEY_AGAIN, SIGHT_FORWARDED },
	};
	struct sighting sighting;
	struct host host;

	world_build(&host, 1, links);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow_key key = world_key(0, cases[i].ifindex, false);
		struct flow_entry entry;

		key.flags = cases[i].flags;
		entry = world_entry(&key, 1, 0, 0);
		host.is_shifting = true;
		sighting_read(&entry, &host, false, &sighting);
		assert_int_equal(sighting.sight, SIGHT_EITHER);
		host.is_shifting = false;
		sighting_read(&entry, &host, false, &sighting);
		assert_int_equal(sighting.sight, cases[i].sight);
	}
	host_done(&host);
}
