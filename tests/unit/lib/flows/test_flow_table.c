// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The table of flows, and the points of a flow. */
#include "flows/flow_table.h"
#include "lib_seed.h"
#include "lib_test.h"
#include "lib_world.h"
#include "host/netif.h"

enum { MANY = 5000 };

static struct flow_key key_of(uint32_t n)
{
	struct flow_key key = world_key(0, 0, false);

	key.src.words[3] = n;
	return key;
}

static struct flow *find(const struct flow_table *table,
			 const struct flow_key *key)
{
	return flow_table_find(table, key, flow_table_hash(table, key));
}

static struct flow *add(struct flow_table *table, const struct flow_key *key)
{
	return flow_table_add(table, key, flow_table_hash(table, key));
}

/* Flow n has n + 1 packets exported, to be known by. */
static void fill_one(struct flow_table *table, uint32_t n)
{
	struct flow_key key = key_of(n);
	struct flow *flow = find(table, &key) ?: add(table, &key);

	assert_non_null(flow);
	flow->exported.packets = n + 1;
}

static void fill(struct flow_table *table, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fill_one(table, i);
}

static void assert_holds(const struct flow_table *table, uint32_t from,
			 uint32_t to)
{
	assert_int_equal(table->count, to - from);
	for (uint32_t i = from; i < to; i++) {
		struct flow_key key = key_of(i);
		struct flow *flow = find(table, &key);

		assert_non_null(flow);
		assert_int_equal(flow->exported.packets, i + 1);
	}
}

TEST(table_that_is_empty_finds_nothing)
{
	struct flow_table table = { 0 };
	struct flow_key key = key_of(1);
	uint32_t cursor = 0;

	assert_null(find(&table, &key));
	assert_false(flow_table_walk(&table, &cursor, 1, NULL, NULL));
	assert_false(flow_table_shrink(&table, 1));
	assert_int_equal(table.n_buckets, 0);
	flow_table_done(&table);
}

/* A mark that is missing hides a flow; one too many costs a look at flows. */
static void assert_marked(const struct flow_table *table)
{
	for (uint32_t i = 0; i < table->n_buckets; i++) {
		const struct flow_chain *chain = &table->buckets[i];
		uint64_t marks = 0;

		for (const struct flow *flow = chain->first; flow;
		     flow = flow->next)
			marks |= flow_table_marks(
				flow_table_hash(table, &flow->key));
		assert_int_equal(chain->marks, marks);
	}
}

/* About a third stays. */
static bool keep_some(void *ctx, struct flow *flow)
{
	(void)ctx;
	(void)flow;
	return test_below(3) == 0;
}

TEST(buckets_are_marked_by_their_flows_alone)
{
	struct flow_table table;
	bool is_larger;

	flow_table_init(&table);
	for (int round = 0; round < 20; round++) {
		uint32_t cursor = 0;

		for (uint32_t n = test_below(MANY); n; n--)
			fill_one(&table, test_below(MANY));
		assert_marked(&table);
		for (uint32_t i = 0; i < MANY; i += 1 + test_below(20)) {
			struct flow_key key = key_of(i);
			struct flow *flow = find(&table, &key);

			if (flow)
				flow_table_remove(&table, flow);
			assert_null(find(&table, &key));
		}
		assert_marked(&table);
		while (flow_table_walk(&table, &cursor, 100, keep_some, NULL))
			;
		assert_marked(&table);
		do
			is_larger = flow_table_shrink(&table, 100);
		while (is_larger && test_below(4));
		assert_marked(&table);
	}
	flow_table_done(&table);
}

/* Above the tags are the bits of the rate. */
static bool is_of_tag(size_t bit)
{
	size_t first = 8 * offsetof(struct flow_key, vlan);

	return bit >= first && bit < first + 32 &&
	       (bit - first) % 16 < KEY_RATE_SHIFT;
}

/* FLOW_KEY_OVERLAY: its byte is the last one of the VNI's word but one. */
static bool is_of_overlay(size_t bit)
{
	return bit == 8 * (offsetof(struct flow_key, vni) - 1) + 3;
}

TEST(table_tells_keys_apart_in_every_bit_but_tags)
{
	struct flow_table table = { 0 };
	struct flow_key base = key_of(0);
	struct flow *flow;

	flow = add(&table, &base);
	assert_true(flow_has_tags(flow, &base));
	for (size_t i = 0; i < 8 * sizeof(base); i++) {
		struct flow_key key = base;

		((uint8_t *)&key)[i / 8] ^= 1 << i % 8;
		if (!is_of_tag(i) && !is_of_overlay(i)) {
			assert_null(find(&table, &key));
			continue;
		}
		assert_ptr_equal(find(&table, &key), flow);
		assert_false(flow_has_tags(flow, &key));
	}
	flow_table_done(&table);
}

/* In the tunnel, where it ends, and at bridges that know no tunnel. */
TEST(tunnel_that_ends_here_is_a_tag)
{
	struct flow_table table = { 0 };
	struct flow_key base = key_of(0), inside = base, other;
	struct flow *flow;

	inside.flags |= FLOW_KEY_OVERLAY;
	inside.tunnel = TUNNEL_VXLAN;
	inside.vni = 10;
	flow = add(&table, &inside);
	assert_ptr_equal(find(&table, &base), flow);
	assert_false(flow_has_tags(flow, &base));
	assert_true(flow_has_tags(flow, &inside));
	other = inside;
	other.vni = 20;
	assert_ptr_equal(find(&table, &other), flow);
	assert_false(flow_has_tags(flow, &other));
	other = inside;
	other.tunnel = TUNNEL_GENEVE;
	assert_ptr_equal(find(&table, &other), flow);
	assert_false(flow_has_tags(flow, &other));
	/* The tunnel of others. */
	other = inside;
	other.flags &= ~FLOW_KEY_OVERLAY;
	assert_null(find(&table, &other));
	flow_table_done(&table);
}

TEST(table_frozen_takes_more_in_the_same_buckets)
{
	struct flow_table table = { 0 };
	uint32_t n_buckets;

	fill(&table, 1);
	n_buckets = table.n_buckets;
	table.frozen = true;
	fill(&table, MANY);
	assert_int_equal(table.n_buckets, n_buckets);
	assert_holds(&table, 0, MANY);
	table.frozen = false;
	fill(&table, MANY + 1);
	assert_true(table.n_buckets > n_buckets);
	assert_holds(&table, 0, MANY + 1);
	flow_table_done(&table);
}

struct visits {
	uint32_t seen[MANY];
	uint32_t keep_from;
};

static bool visit(void *ctx, struct flow *flow)
{
	struct visits *visits = ctx;
	uint32_t n = flow->exported.packets - 1;

	visits->seen[n]++;
	return n >= visits->keep_from;
}

static void walk(struct flow_table *table, struct visits *visits, uint32_t slice)
{
	uint32_t cursor = 0, slices = 0;

	while (flow_table_walk(table, &cursor, slice, visit, visits))
		assert_true(++slices <= table->n_buckets);
}

TEST(walk_visits_each_once_and_removes)
{
	static const uint32_t slices[] = { 1, 7, 256, 4096, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
		struct visits visits = { .keep_from = MANY / 2 };
		struct flow_table table = { 0 };

		fill(&table, MANY);
		walk(&table, &visits, slices[i]);
		for (uint32_t n = 0; n < MANY; n++)
			assert_int_equal(visits.seen[n], 1);
		assert_holds(&table, MANY / 2, MANY);
		visits.keep_from = MANY;
		walk(&table, &visits, slices[i]);
		assert_int_equal(table.count, 0);
		flow_table_done(&table);
	}
}

TEST(shrink_gives_back_and_keeps_all)
{
	struct visits visits = { .keep_from = MANY - 10 };
	struct flow_table table = { 0 };
	uint32_t large, small;

	fill(&table, MANY);
	large = table.n_buckets;
	assert_false(flow_table_shrink(&table, UINT32_MAX));
	assert_int_equal(table.n_buckets, large);
	walk(&table, &visits, UINT32_MAX);
	while (flow_table_shrink(&table, 1)) {
		assert_true(table.n_buckets > (table.mask + 1) / 2);
		assert_holds(&table, MANY - 10, MANY);
	}
	small = table.n_buckets;
	assert_true(small < large / 8);
	assert_true(table.capacity < large / 2);
	assert_true(small >= table.count);
	assert_holds(&table, MANY - 10, MANY);
	assert_false(flow_table_shrink(&table, UINT32_MAX));
	assert_int_equal(table.n_buckets, small);
	flow_table_done(&table);
}

/* So that none takes long, however many flows there are. */
TEST(no_call_moves_more_than_a_few_buckets)
{
	struct visits visits = { .keep_from = MANY };
	struct flow_table table = { 0 };
	uint32_t before, calls = 0;

	for (uint32_t i = 1; i <= MANY; i++) {
		before = table.n_buckets;
		fill_one(&table, i - 1);
		assert_true(!before || table.n_buckets <= before + 2);
		assert_true(table.n_buckets >= i);
	}
	assert_holds(&table, 0, MANY);
	walk(&table, &visits, UINT32_MAX);
	do {
		before = table.n_buckets;
		calls++;
	} while (flow_table_shrink(&table, 10) && before - table.n_buckets <= 10);
	assert_true(calls > (MANY - 256) / 10);
	assert_int_equal(table.n_buckets, 256);
	flow_table_done(&table);
}

static bool is_before(const struct point *a, const struct point *b)
{
	if (a->egress != b->egress)
		return a->egress < b->egress;
	if (a->netns != b->netns)
		return a->netns < b->netns;
	return a->ifindex < b->ifindex;
}

/* Of low and of the highest numbers. */
static struct point *ensure_numbered(struct flow *flow, uint32_t n)
{
	static const uint16_t netns[] = { 0, 1, UINT16_MAX };
	const uint32_t ifindex = n / 6 < 9 ? n / 6 + 1 : UINT32_MAX - n / 6 + 9;

	return flow_ensure_point(flow, netns[n / 2 % 3], ifindex, n % 2);
}

TEST(points_are_ingress_first_then_by_netns_and_ifindex)
{
	struct flow_key key = key_of(0);
	struct flow flow;

	flow_init(&flow, &key);
	for (uint32_t i = 0; i < 105; i++) {
		uint32_t n = i * 38 % 105; /* each of 0 to 104 once */
		struct point *point = ensure_numbered(&flow, n);

		assert_non_null(point);
		assert_int_equal(point->seen.packets, 0);
		point->seen.packets = n + 1;
		assert_int_equal(flow.n_points, i + 1);
	}
	for (uint32_t i = 1; i < flow.n_points; i++)
		assert_true(is_before(&flow.points[i - 1], &flow.points[i]));
	for (uint32_t n = 0; n < 105; n++)
		assert_int_equal(ensure_numbered(&flow, n)->seen.packets, n + 1);
	assert_int_equal(flow.n_points, 105);
	flow_done(&flow);
}

/* A flow that was exported, seen at one point with @sight. */
static struct flow exported_flow(uint32_t n, enum sight sight)
{
	struct flow_key key = key_of(n);
	struct flow flow;

	flow_key_set_rate_id(&key, n % RATE_IDS);
	flow_init(&flow, &key);
	flow.is_random = n & 4;
	flow_ensure_point(&flow, 1, 2 + n, n & 1);
	flow.point.sights = 1 << sight;
	flow.point.seen = (struct volume){ n + 1, 100 * n + 40, 100 * n + 54 };
	flow.exported = flow.point.seen;
	if (sight == SIGHT_FIRST)
		flow.entered = flow.point.seen;
	flow.first_ns = 10 + n;
	flow.last_ns = 20 + n;
	flow.has_mac = n & 2;
	flow.macs[11] = (uint8_t)n;
	return flow;
}

static void assert_is(const struct flow *flow, const struct flow *want)
{
	struct flow got = *flow;

	got.next = NULL;
	assert_ptr_equal(got.points, &flow->point);
	got.points = want->points;
	assert_memory_equal(&got, want, sizeof(got));
}

static bool keep_all(void *ctx, struct flow *flow)
{
	(void)ctx;
	(void)flow;
	return true;
}

static void walk_all(struct flow_table *table)
{
	uint32_t cursor = 0;

	while (flow_table_walk(table, &cursor, 64, keep_all, NULL))
		;
}

/* Of @n flows of exported_flow(). */
static void assert_rates(const struct flow_table *table, uint32_t n)
{
	assert_int_equal(table->count, n);
	for (uint32_t id = 0; id < RATE_IDS; id++)
		assert_int_equal(table->n_by_rate[id],
				 n / RATE_IDS + (id < n % RATE_IDS));
}

TEST(brief_flow_is_all_of_what_it_was)
{
	struct flow_table table;

	flow_table_init(&table);
	for (uint32_t n = 0; n < MANY; n++) {
		struct flow flow = exported_flow(n, n % (SIGHT_EITHER + 1));

		flow.points = &flow.point;
		assert_true(flow_can_be_brief(&flow));
		assert_non_null(flow_table_add_brief(
			&table, &flow, flow_table_hash(&table, &flow.key)));
	}
	/* To full ones and back, twice. */
	for (int i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < MANY; n++) {
			struct flow want =
				exported_flow(n, n % (SIGHT_EITHER + 1));
			struct flow *found = find(&table, &want.key);

			assert_true(found->is_brief);
			found = flow_table_expand(&table, found,
						  flow_table_hash(&table,
								  &want.key));
			assert_is(found, &want);
			assert_ptr_equal(find(&table, &want.key), found);
		}
		walk_all(&table);
	}
	assert_rates(&table, MANY);
	for (uint32_t n = 0; n < MANY; n++) {
		const struct flow flow = exported_flow(n, SIGHT_FIRST);

		flow_table_remove(&table, find(&table, &flow.key));
		assert_null(find(&table, &flow.key));
	}
	assert_rates(&table, 0);
	flow_table_done(&table);
}

TEST(flows_with_more_to_say_stay_full)
{
	for (int i = 0; i <= 6; i++) {
		struct flow flow = exported_flow(7, SIGHT_FIRST);

		flow.points = &flow.point;
		flow.fresh = i == 1;
		flow.is_stray = i == 2;
		flow.tunnel.type = i == 3 ? TUNNEL_VXLAN : TUNNEL_NONE;
		flow.exported.l2_bytes -= i == 4;
		flow.entered.packets -= i == 5;
		if (i == 6)
			flow_ensure_point(&flow, 1, 1, false);
		assert_int_equal(flow_can_be_brief(&flow), i == 0);
		flow_done(&flow);
	}
}
