// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* How much traffic a flow was, given what each observation point saw. */
#include "bpf/types.h"
#include "lib_test.h"
#include "lib_world.h"
#include "observe.h"
#include "util.h"

#include <string.h>

enum { IN = 0, OUT = 1, POINTS = 8, LINKS = 8 };

/* What one point saw; ifindex 0 ends a list. */
struct sight {
	uint32_t ifindex;
	uint8_t egress;
	uint64_t packets;
	uint16_t place;
};

static const struct {
	const char *name;
	struct world_link links[LINKS];
	struct sight sights[POINTS];
	uint64_t total;
} cases[] = {
	{ "one point", { { .ifindex = 1 } }, { { 1, IN, 7, 0 } }, 7 },
	{ "one point at an interface nobody knows",
	  { { .ifindex = 1 } },
	  { { 99, OUT, 7, 0 } },
	  7 },
	{ "forwarded",
	  { { .ifindex = 1 }, { .ifindex = 2 } },
	  { { 1, IN, 10, 0 }, { 2, OUT, 10, 0 } },
	  10 },
	{ "forwarded, one still on its way",
	  { { .ifindex = 1 }, { .ifindex = 2 } },
	  { { 1, IN, 10, 0 }, { 2, OUT, 9, 0 } },
	  10 },
	{ "forwarded, first seen on the way out",
	  { { .ifindex = 1 }, { .ifindex = 2 } },
	  { { 1, IN, 3, 0 }, { 2, OUT, 10, 0 } },
	  10 },
	{ "forwarded between interfaces nobody knows",
	  { { .ifindex = 1 } },
	  { { 8, IN, 10, 0 }, { 9, OUT, 10, 0 } },
	  10 },
	{ "bridged from veth to veth",
	  { { 1, 0, 3, 0, 0 }, { 2, 0, 3, 0, 0 }, { .ifindex = 3 } },
	  { { 1, IN, 10, 0 }, { 2, OUT, 10, 0 } },
	  10 },
	{ "veth, bridge and out by another interface",
	  { { 1, 0, 3, 0, 0 }, { .ifindex = 3 }, { .ifindex = 4 } },
	  { { 1, IN, 10, 0 }, { 3, IN, 10, 0 }, { 4, OUT, 10, 0 } },
	  10 },
	{ "in by an interface, out by bridge and veth",
	  { { 1, 0, 3, 0, 0 }, { .ifindex = 3 }, { .ifindex = 4 } },
	  { { 4, IN, 10, 0 }, { 1, OUT, 10, 0 }, { 3, OUT, 10, 0 } },
	  10 },
	{ "hairpin on one interface",
	  { { .ifindex = 1 } },
	  { { 1, IN, 10, 0 }, { 1, OUT, 10, 0 } },
	  10 },
	{ "loopback sees both ways",
	  { { .ifindex = 1 } },
	  { { 1, IN, 4, 0 }, { 1, OUT, 5, 0 } },
	  5 },
	{ "out by two links",
	  { { .ifindex = 1 }, { .ifindex = 2 } },
	  { { 1, OUT, 6, 0 }, { 2, OUT, 4, 0 } },
	  10 },
	{ "in by one link, out by two",
	  { { .ifindex = 1 }, { .ifindex = 2 }, { .ifindex = 3 } },
	  { { 3, IN, 10, 0 }, { 1, OUT, 6, 0 }, { 2, OUT, 4, 0 } },
	  10 },
	{ "in by two links, out by one",
	  { { .ifindex = 1 }, { .ifindex = 2 }, { .ifindex = 3 } },
	  { { 1, IN, 6, 0 }, { 2, IN, 4, 0 }, { 3, OUT, 9, 0 } },
	  10 },
	{ "bond and its slaves",
	  { { 1, 0, 3, 0, 0 }, { 2, 0, 3, 0, 0 }, { .ifindex = 3 } },
	  { { 1, OUT, 6, 0 }, { 2, OUT, 4, 0 }, { 3, OUT, 10, 0 } },
	  10 },
	{ "bond of which one slave is observed",
	  { { 1, 0, 3, 0, 0 }, { 2, 0, 3, 0, 0 }, { .ifindex = 3 } },
	  { { 1, OUT, 6, 0 }, { 3, OUT, 10, 0 } },
	  10 },
	{ "slaves alone",
	  { { 1, 0, 3, 0, 0 }, { 2, 0, 3, 0, 0 }, { .ifindex = 3 } },
	  { { 1, IN, 6, 0 }, { 2, IN, 4, 0 } },
	  10 },
	{ "slaves, bond and a VLAN on it",
	  { { 1, 0, 3, 0, 0 },
	    { 2, 0, 3, 0, 0 },
	    { .ifindex = 3 },
	    { 4, 0, 0, 3, 10 } },
	  { { 1, IN, 6, 0 }, { 2, IN, 4, 0 }, { 3, IN, 10, 0 }, { 4, IN, 10, 0 } },
	  10 },
	{ "two bonds side by side",
	  { { 1, 0, 5, 0, 0 }, { 2, 0, 6, 0, 0 }, { .ifindex = 5 }, { .ifindex = 6 } },
	  { { 1, OUT, 6, 0 }, { 2, OUT, 4, 0 }, { 5, OUT, 6, 0 }, { 6, OUT, 4, 0 } },
	  10 },
	{ "from one namespace to the other",
	  { { .ifindex = 1 }, { .ifindex = 1, .place = 1 } },
	  { { 1, OUT, 10, 0 }, { 1, IN, 10, 1 } },
	  10 },
	{ "the same direction in two namespaces",
	  { { .ifindex = 1 }, { .ifindex = 1, .place = 1 } },
	  { { 1, IN, 10, 0 }, { 1, IN, 8, 1 } },
	  10 },
	{ "pod to pod over two namespaces and a bridge",
	  { { 1, 0, 3, 0, 0 },
	    { 2, 0, 3, 0, 0 },
	    { .ifindex = 3 },
	    { .ifindex = 5, .place = 1 } },
	  { { 5, OUT, 10, 1 }, { 1, IN, 10, 0 }, { 2, OUT, 9, 0 } },
	  10 },
};

/* Every point's bytes are WORLD_BYTES per packet and so on. */
static void see(struct flow *flow, const struct sight *sight)
{
	struct point *point = flow_ensure_point(flow, sight->place,
						sight->ifindex, sight->egress);
	struct volume volume = { sight->packets, sight->packets * WORLD_BYTES,
				 sight->packets * WORLD_L2_BYTES };

	assert_non_null(point);
	volume_add(&point->seen, &volume);
}

static uint64_t total_of(const struct flow *flow, const struct watch *watch)
{
	struct volume total = { 99, 99, 99 };

	assert_true(observe_total(flow, watch, &total));
	assert_int_equal(total.bytes, total.packets * WORLD_BYTES);
	assert_int_equal(total.l2_bytes, total.packets * WORLD_L2_BYTES);
	return total.packets;
}

/* An IPv4 flow to an address that begins with @first. */
static void flow_to(uint8_t first, struct flow *ret_flow)
{
	struct flow_key key = world_key(0, 0, false);

	key.dst.bytes[12] = first;
	flow_init(ret_flow, &key);
}

static void total_counts_each_packet_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow flow;
		struct watch watch;
		uint64_t total;

		flow_to(10, &flow);
		world_build(&watch, 2, cases[i].links);
		for (const struct sight *s = cases[i].sights; s->ifindex; s++)
			see(&flow, s);
		total = total_of(&flow, &watch);
		if (total != cases[i].total)
			fail_msg("%s: %ju", cases[i].name, (uintmax_t)total);
		flow_done(&flow);
		watch_done(&watch);
	}
}

/* In whatever order points turn up and grow, no total is taken back. */
static void total_never_shrinks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow flow;
		struct watch watch;
		uint64_t last = 0;

		flow_to(10, &flow);
		world_build(&watch, 2, cases[i].links);
		for (int round = 0; round < 40; round++) {
			size_t n = 0;
			struct sight sight;

			while (cases[i].sights[n].ifindex)
				n++;
			sight = cases[i].sights[(round * 5 + round / 3) % n];
			sight.packets = 1 + round * 7 % 4;
			see(&flow, &sight);
			assert_true(total_of(&flow, &watch) >= last);
			last = total_of(&flow, &watch);
		}
		flow_done(&flow);
		watch_done(&watch);
	}
}

static const struct {
	const char *name;
	uint8_t dst; /* its first byte */
	bool ipv6;
	uint8_t dst_mac;
	uint8_t egress;
	uint64_t total;
} groups[] = {
	{ "unicast on two ways out", 10, false, 2, OUT, 20 },
	{ "IPv4 multicast on two ways out", 224, false, 2, OUT, 10 },
	{ "IPv4 multicast, last block", 239, false, 2, OUT, 10 },
	{ "IPv4 limited broadcast", 255, false, 2, OUT, 10 },
	{ "just below multicast", 223, false, 2, OUT, 20 },
	{ "subnet broadcast is known by the MAC", 10, false, 0xff, OUT, 10 },
	{ "multicast by the MAC alone", 10, false, 1, OUT, 10 },
	{ "multicast on two ways in", 224, false, 1, IN, 20 },
	{ "IPv6 multicast", 0xff, true, 2, OUT, 10 },
	{ "IPv6 unicast", 0xfe, true, 2, OUT, 20 },
};

static void total_of_group_copies_is_the_largest(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		const struct world_link links[] = { { .ifindex = 1 },
						    { .ifindex = 2 },
						    { .ifindex = 0 } };
		const struct sight first = { 1, groups[i].egress, 10, 0 };
		const struct sight second = { 2, groups[i].egress, 10, 0 };
		struct flow_key key = world_key(0, 0, false);
		struct watch watch;
		struct flow flow;
		uint64_t total;

		if (groups[i].ipv6) {
			key.flags |= KEY_IPV6;
			key.dst.bytes[0] = groups[i].dst;
		} else {
			key.dst.bytes[12] = groups[i].dst;
		}
		flow_init(&flow, &key);
		flow.has_mac = true;
		flow.dst_mac[0] = groups[i].dst_mac;
		world_build(&watch, 1, links);
		see(&flow, &first);
		see(&flow, &second);
		total = total_of(&flow, &watch);
		if (total != groups[i].total)
			fail_msg("%s: %ju", groups[i].name, (uintmax_t)total);
		flow_done(&flow);
		watch_done(&watch);
	}
}

/* Also those of one bridge: each port sends a copy. */
static void total_of_group_copies_to_ports_of_a_bridge(void **state)
{
	static const struct world_link links[] = { { 1, 0, 4, 0, 0 },
						   { 2, 0, 4, 0, 0 },
						   { 3, 0, 4, 0, 0 },
						   { .ifindex = 4 },
						   { .ifindex = 0 } };
	static const struct sight sights[] = { { 4, OUT, 10, 0 },
					       { 1, OUT, 10, 0 },
					       { 2, OUT, 10, 0 },
					       { 3, OUT, 10, 0 } };
	struct flow flow;
	struct watch watch;

	(void)state;
	flow_to(224, &flow);
	world_build(&watch, 1, links);
	for (size_t i = 0; i < ARRAY_SIZE(sights); i++)
		see(&flow, &sights[i]);
	assert_int_equal(total_of(&flow, &watch), 10);
	flow_done(&flow);
	watch_done(&watch);
}

static void total_of_more_points_than_fit_inline(void **state)
{
	static const uint32_t counts[] = { 2, 15, 16, 17, 18, 33, 64, 100 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct flow flow;
		struct watch watch;

		flow_to(10, &flow);
		world_build(&watch, 1, NULL);
		for (uint32_t k = counts[i]; k; k--) {
			const struct sight sight = { k, OUT, k, 0 };

			see(&flow, &sight);
		}
		assert_int_equal(flow.n_points, counts[i]);
		assert_int_equal(total_of(&flow, &watch),
				 counts[i] * (counts[i] + 1) / 2);
		flow_done(&flow);
		watch_done(&watch);
	}
}

#define TAG(id) ((id) | VLAN_PRESENT)

static const struct world_link vlan_links[] = {
	{ .ifindex = 1 },     { 2, 0, 0, 1, 10 }, /* if1.10 */
	{ 3, 0, 0, 2, 20 },			  /* if1.10.20 */
	{ 4, 0, 0, 3, 30 },			  /* if1.10.20.30 */
	{ 5, 0, 0, 1, 0 },			  /* macvlan on if1 */
	{ 6, 0, 0, 5, 40 },			  /* VLAN on the macvlan */
	{ 7, 0, 9, 0, 0 },			  /* slave */
	{ 9, 0, 0, 0, 0 },			  /* bond */
	{ 10, 0, 0, 9, 50 },			  /* VLAN on the bond */
	{ 11, 0, 0, 77, 60 },			  /* its lower is not known */
	{ 12, 0, 0, 13, 70 },			  /* a cycle */
	{ 13, 0, 0, 12, 0 },  { .ifindex = 0 },
};

static void key_has_the_tags_that_devices_take_off(void **state)
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
		{ 99, TAG(5), 0, TAG(5), 0 },
	};
	struct watch watch;

	(void)state;
	world_build(&watch, 1, vlan_links);
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
		struct flow_key key = world_key(0, tags[i].ifindex, false),
				common;

		key.vlan = tags[i].vlan;
		key.outer_vlan = tags[i].outer;
		observe_key(&key, &watch, &common);
		if (common.vlan != tags[i].expected_vlan ||
		    common.outer_vlan != tags[i].expected_outer)
			fail_msg("case %zu: vlan %x, outer %x", i, common.vlan,
				 common.outer_vlan);
	}
	watch_done(&watch);
}

static void key_ends_with_a_cycle_of_devices(void **state)
{
	struct flow_key key = world_key(0, 12, false), common;
	struct watch watch;

	(void)state;
	world_build(&watch, 1, vlan_links);
	observe_key(&key, &watch, &common);
	assert_int_equal(common.vlan, TAG(70));
	watch_done(&watch);
}

static void key_is_the_same_at_all_points(void **state)
{
	struct flow_key first = world_key(0, 1, false), second, a, b;
	struct watch watch;

	(void)state;
	world_build(&watch, 2, vlan_links);
	second = world_key(1, 77, true);
	first.flags |= KEY_IPV6;
	second.flags |= KEY_IPV6;
	observe_key(&first, &watch, &a);
	observe_key(&second, &watch, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(a.flags, KEY_IPV6);
	second.src_port++;
	observe_key(&second, &watch, &b);
	assert_memory_not_equal(&a, &b, sizeof(a));
	watch_done(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(total_counts_each_packet_once),
		cmocka_unit_test(total_never_shrinks),
		cmocka_unit_test(total_of_group_copies_is_the_largest),
		cmocka_unit_test(total_of_group_copies_to_ports_of_a_bridge),
		cmocka_unit_test(total_of_more_points_than_fit_inline),
		cmocka_unit_test(key_has_the_tags_that_devices_take_off),
		cmocka_unit_test(key_ends_with_a_cycle_of_devices),
		cmocka_unit_test(key_is_the_same_at_all_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
