// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What merging makes of the parts of a flow, and that nothing gets lost in it. */
#include "lib_merger.h"
#include "lib_seed.h"
#include "lib_test.h"

static const struct rates all_packets;
/* Number 0 has a rate here: entries need none. */
static const struct rates one_packet_of_4 = { .ids = { { 4, SAMPLE_PACKETS } } };

/* The record that two entries of one flow, at one point, become. */
static struct netobs_flow record_of(const struct flow_entry entries[2],
				    struct merge_options options)
{
	struct netobs_flow flow;
	struct merger m;

	merger_open_in(&m, options, 1, merger_bridged);
	merge_begin(&m.merge, MERGE_FINAL, 1000 * NSEC_PER_MSEC);
	merger_keep_entry(&m, &entries[0]);
	merger_keep_entry(&m, &entries[1]);
	merger_end(&m);
	assert_int_equal(m.witness.n_flows, 1);
	flow = m.witness.flows[0].flow;
	flow.points = NULL;
	merger_close(&m);
	return flow;
}

/* Two entries in either order: the result must be the same. */
static void pair(struct flow_entry entries[2])
{
	struct flow_key key = world_key(0, 1, IN);

	entries[0] =
		world_entry(&key, 3, 100 * NSEC_PER_MSEC, 700 * NSEC_PER_MSEC);
	entries[1] =
		world_entry(&key, 4, 200 * NSEC_PER_MSEC, 800 * NSEC_PER_MSEC);
}

static void swap(struct flow_entry entries[2])
{
	struct flow_entry first = entries[0];

	entries[0] = entries[1];
	entries[1] = first;
}

TEST(parts_add_up_in_either_order)
{
	struct flow_entry entries[2];

	pair(entries);
	entries[0].tally.attrs.dscp = 4;
	entries[1].tally.attrs.dscp = 46; /* the later one */
	entries[0].tally.attrs.flow_label = 0xbeef5;
	entries[1].tally.attrs.flow_label = 7;
	entries[0].tally.attrs.ttl_min = 60;
	entries[0].tally.attrs.ttl_max = 61;
	entries[1].tally.attrs.ttl_min = 59;
	entries[1].tally.attrs.ttl_max = 64;
	for (int i = 0; i < 2; i++) {
		struct netobs_flow flow =
			record_of(entries, merger_every_second());

		assert_int_equal(flow.packets, 7);
		assert_int_equal(flow.bytes, 7 * WORLD_BYTES);
		assert_int_equal(flow.l2_bytes, 7 * WORLD_L2_BYTES);
		assert_int_equal(flow.start_ns, 100 * NSEC_PER_MSEC);
		assert_int_equal(flow.end_ns, 800 * NSEC_PER_MSEC);
		assert_int_equal(flow.dscp, 0xb8 >> 2);
		assert_int_equal(flow.flow_label, 0xbeef5); /* of the earlier */
		assert_int_equal(flow.ttl_min, 59);
		assert_int_equal(flow.ttl_max, 64);
		swap(entries);
	}
}

TEST(marks_are_united)
{
	struct flow_entry entries[2];

	pair(entries);
	for (int i = 0; i < 2; i++) {
		entries[i].key.proto = 6;
		entries[i].tally.attrs.marks = i ? 0x002 : 0x010;
	}
	entries[0].tally.attrs.marks |= 0x001 | MARK_FIN_ACK;
	entries[1].tally.attrs.marks |= 0x800 | MARK_SYN_ACK |
					1 << MARK_ECN_SHIFT |
					1 << (MARK_ECN_SHIFT + 3);
	for (int i = 0; i < 2; i++) {
		struct netobs_flow flow =
			record_of(entries, merger_every_second());

		assert_int_equal(flow.tcp_flags, 0x813);
		assert_int_equal(flow.tcp_combined,
				 NETOBS_TCP_SYN_ACK | NETOBS_TCP_FIN_ACK);
		assert_int_equal(flow.ecn_seen, 1 << 0 | 1 << 3);
		assert_int_equal(flow.end_reason, NETOBS_END_DETECTED);
		swap(entries);
	}
}

TEST(macs_come_from_whichever_part_has_them)
{
	static const uint8_t src[] = { 2, 0, 0, 0, 0, 1 };
	static const uint8_t dst[] = { 2, 0, 0, 0, 0, 2 };
	struct merge_options hidden = merger_every_second();
	struct flow_entry entries[2];

	hidden.hide_link = true;
	pair(entries);
	entries[0].tally.attrs.has_mac = false;
	memset(entries[0].tally.macs, 0xee, sizeof(entries[0].tally.macs));
	for (int i = 0; i < 2; i++) {
		struct netobs_flow flow =
			record_of(entries, merger_every_second());

		assert_true(flow.has & NETOBS_HAS_MAC);
		assert_memory_equal(flow.src_mac, src, sizeof(src));
		assert_memory_equal(flow.dst_mac, dst, sizeof(dst));
		flow = record_of(entries, hidden);
		assert_true(flow.has & NETOBS_HAS_MAC);
		swap(entries);
	}
	for (int i = 0; i < 2; i++)
		memset(entries[i].tally.macs, 0, sizeof(entries[i].tally.macs));
	assert_true(record_of(entries, merger_every_second()).has &
		    NETOBS_HAS_MAC);
	assert_false(record_of(entries, hidden).has & NETOBS_HAS_MAC);
}

/* What a record says is of the packets it counts, not of earlier ones. */
BRIDGED_TEST(record_forgets_what_the_last_one_told)
{
	struct flow_entry entries[2];
	struct netobs_flow *flow;

	pair(entries);
	entries[0].key.proto = entries[1].key.proto = 6;
	entries[0].tally.attrs.marks = 0x002;
	entries[0].tally.attrs.ttl_min = 1;
	entries[0].tally.last_ns = 999 * NSEC_PER_MSEC;
	entries[1].tally.attrs.marks = 0x010;
	entries[1].tally.first_ns = 1100 * NSEC_PER_MSEC;
	entries[1].tally.last_ns = 1200 * NSEC_PER_MSEC;
	for (int i = 0; i < 2; i++) {
		merge_begin(&m->merge, MERGE_INTERVAL, (i + 1) * NSEC_PER_SEC);
		merger_keep_entry(m, &entries[i]);
		merger_end(m);
	}
	assert_int_equal(m->witness.n_flows, 2);
	flow = &m->witness.flows[1].flow;
	assert_int_equal(flow->tcp_flags, 0x010);
	assert_int_equal(flow->ttl_min, 64);
	assert_int_equal(flow->start_ns, 1100 * NSEC_PER_MSEC);
}

/* Interfaces that became a stack: less traffic than was reported already. */
BRIDGED_TEST(total_that_shrinks_takes_nothing_back)
{
	struct flow_entry out[2];

	pair(out);
	out[0].key.flags = out[1].key.flags = ON; /* translated */
	out[0].key.ifindex = 3;
	out[1].key.ifindex = 4;
	out[0].tally.last_ns = out[1].tally.last_ns = 999 * NSEC_PER_MSEC;
	merge_begin(&m->merge, MERGE_INTERVAL, 1000 * NSEC_PER_MSEC);
	merger_keep_entry(m, &out[0]);
	merger_keep_entry(m, &out[1]);
	merger_end(m);
	assert_int_equal(m->witness.packets, 7);

	netifs_find(&m->host.netns[0].netifs, 4)->master = 3;
	netifs_restack(&m->host.netns[0].netifs);
	assert_int_equal(netifs_find(&m->host.netns[0].netifs, 4)->level, 0);
	merge_begin(&m->merge, MERGE_INTERVAL, 2000 * NSEC_PER_MSEC);
	out[0].tally.packets = 1;
	out[0].tally.bytes = WORLD_BYTES;
	out[0].tally.last_ns = 1500 * NSEC_PER_MSEC;
	merger_keep_entry(m, &out[0]);
	merger_end(m);
	assert_int_equal(m->witness.packets, 7);
	assert_int_equal(m->merge.exported.packets, 7);
}

/* @tags: those of an entry at interface 1 coming in, and of one leaving by 4. */
static void keep_tagged(struct merger *m, uint16_t in, uint16_t out,
			bool out_first)
{
	struct flow_entry entries[2];

	pair(entries);
	entries[0].key.vlan = in;
	entries[1].key.vlan = out;
	entries[1].key.ifindex = 4;
	entries[1].key.flags = ON;
	if (out_first)
		swap(entries);
	merger_keep_entry(m, &entries[0]);
	merger_keep_entry(m, &entries[1]);
}

TEST(flow_has_the_tags_of_where_it_enters)
{
	static const uint16_t tags[][2] = {
		{ 0, VLAN_PRESENT | 20 },
		{ VLAN_PRESENT | 10, 0 },
		{ VLAN_PRESENT | 10, VLAN_PRESENT | 20 },
		{ VLAN_PRESENT | 10, VLAN_PRESENT | 10 },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(tags); i++) {
		const uint16_t *tag = tags[i / 2];
		struct merger m;

		merger_open_in(&m, merger_every_second(), 1, merger_bridged);
		merge_begin(&m.merge, MERGE_FINAL, NSEC_PER_SEC);
		keep_tagged(&m, tag[0], tag[1], i & 1);
		merger_end(&m);
		merger_assert_record(&m, 1, 3, NETOBS_END_FORCED);
		assert_int_equal(merger_last_record(&m)->n_points, 2);
		assert_int_equal(merger_last_record(&m)->vlan_id,
				 tag[0] & VLAN_ID_MASK);
		assert_int_equal(!(merger_last_record(&m)->has & NETOBS_HAS_VLAN),
				 !tag[0]);
		merger_close(&m);
	}
}

/* An entry with other tags that the topology cannot distinguish from a first sight. */
BRIDGED_TEST(stray_counts_as_its_sight_says)
{
	struct flow_entry entries[2];

	pair(entries);
	entries[0].key.vlan = VLAN_PRESENT | 10;
	entries[1].key.ifindex = 4;
	entries[1].key.flags = KEY_EGRESS;
	merge_begin(&m->merge, MERGE_FINAL, NSEC_PER_SEC);
	merger_keep_entry(m, &entries[0]);
	m->host.is_shifting = true;
	merger_keep_entry(m, &entries[1]);
	merger_end(m);
	merger_assert_record(m, 1, 4, NETOBS_END_FORCED);
	assert_int_equal(merger_last_record(m)->n_points, 2);
	assert_int_equal(merger_last_record(m)->vlan_id, 10);
}

/* Translated in namespace 0, it leaves that with a tag, and namespace 1 without. */
static const struct world_link routed[] = { PEER(1, 0, 2, 1),
					    PEER(2, 1, 1, 0),
					    { .ifindex = 3, .netns = 1 },
					    { .ifindex = 4 },
					    { .ifindex = 0 } };

/* What interval @n sees of it, read in either order. Clocks of CPUs may differ. */
static void keep_translated(struct merger *m, int n, bool is_reverse)
{
	int64_t first_ns = (n * 1000 + 100) * NSEC_PER_MSEC;
	int later = n ? -1 : 1;
	struct flow_entry entries[3];
	const struct flow_key keys[] = { world_key(0, 1, true),
					 world_key(1, 2, false),
					 world_key(1, 3, true) };

	for (int i = 0; i < 3; i++) {
		entries[i] = world_entry(&keys[i], 6 + n, first_ns + later * i,
					 first_ns + 100);
		entries[i].key.vlan = i < 2 ? VLAN_PRESENT | 20 : 0;
		if (keys[i].flags & KEY_EGRESS)
			entries[i].key.flags |= KEY_AGAIN;
	}
	for (int i = 0; i < 3; i++)
		merger_keep_entry(m, &entries[is_reverse ? 2 - i : i]);
}

TEST(translated_flow_keeps_its_tags)
{
	for (int orders = 0; orders < 8; orders++) {
		uint64_t packets = 0;
		struct merger m;

		merger_open_in(&m, merger_every_second(), 2, routed);
		for (int n = 0; n < 3; n++) {
			merger_begin(&m, n < 2 ? MERGE_ALL : MERGE_FINAL,
				     (n + 1) * 1000);
			keep_translated(&m, n, orders >> n & 1);
			merger_end(&m);
			packets += 6 + n;
			assert_int_equal(m.witness.packets, packets);
			assert_int_equal(m.witness.n_flows, n + 1);
			assert_int_equal(merger_last_record(&m)->vlan_id, 20);
		}
		assert_int_equal(m.merge.inferred.packets, packets);
		merger_close(&m);
	}
}

/* At the flip it was on its way, so that its way out is read an interval earlier. */
BRIDGED_TEST(flow_reported_before_its_entry_is_read_counts_once)
{
	struct flow_entry entry;

	merger_begin(m, MERGE_ALL, 1000);
	entry = merger_entry(4, ON, 5, 900, 999);
	merger_keep_entry(m, &entry);
	merger_end(m);
	merger_assert_record(m, 1, 5, NETOBS_END_ACTIVE);

	merger_begin(m, MERGE_FINAL, 2000);
	entry = merger_entry(1, IN, 5, 900, 999);
	entry.key.vlan = VLAN_PRESENT | 10;
	merger_keep_entry(m, &entry);
	merger_end(m);
	assert_int_equal(m->witness.packets, 5);
}

/* Each comes in at 1 and leaves by 4, in whatever order that is read. */
TEST(tenants_are_listed_where_they_were)
{
	for (uint32_t order = 0; order < 24; order++) {
		uint32_t left[4] = { 0, 1, 2, 3 }, rest = order;
		struct merger m;

		merger_open_in(&m, merger_every_second(), 1, merger_bridged);
		merge_begin(&m.merge, MERGE_FINAL, NSEC_PER_SEC);
		for (uint32_t n = 4; n; n--) {
			uint32_t pick = left[rest % n];
			struct flow_entry entries[2], *entry;

			left[rest % n] = left[n - 1];
			rest /= n;
			pair(entries);
			entry = &entries[!(pick & 1)];
			entry->key.vlan = VLAN_PRESENT | (pick & 1 ? 10 : 20);
			entry->key.ifindex = pick & 2 ? 1 : 4;
			entry->key.flags = pick & 2 ? IN : ON;
			merger_keep_entry(&m, entry);
		}
		merger_end(&m);
		assert_int_equal(m.witness.n_flows, 2);
		for (int i = 0; i < 2; i++) {
			const struct netobs_flow *flow = &m.witness.flows[i].flow;

			assert_int_equal(flow->packets,
					 flow->vlan_id == 10 ? 3 : 4);
			assert_int_equal(flow->n_points, 2);
		}
		assert_int_equal(m.witness.flows[0].flow.vlan_id +
					 m.witness.flows[1].flow.vlan_id,
				 10 + 20);
		merger_close(&m);
	}
}

static struct flow_entry anything(int64_t from_ns)
{
	struct flow_key key = world_key(0, 1 + test_below(4), test_below(2));
	int64_t first_ns = from_ns + test_below(1000) * NSEC_PER_MSEC;
	int64_t last_ns =
		from_ns + 999 * NSEC_PER_MSEC - test_below(100) * NSEC_PER_MSEC;
	struct flow_entry entry;

	key.src_port = test_below(40);
	if (key.src_port < 5)
		world_join_ends(&key);
	key.proto = test_below(2) ? 6 : 17;
	entry = world_entry(&key, 1 + test_below(5), first_ns,
			    last_ns < first_ns ? first_ns : last_ns);
	entry.tally.attrs.marks = test_below(50) ? 0x10 : 0x11;
	/* Packets of a tuple that are not the same, as at two interfaces that forge it. */
	entry.tally.bytes += test_below(100);
	return entry;
}

static void feed(struct merger *m, int64_t from_ns)
{
	struct flow_entry entries[50];

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i] = anything(from_ns);
		merger_keep_entry(m, &entries[i]);
		entries[i] = anything(from_ns);
	}
	merger_deliver(m, entries, ARRAY_SIZE(entries));
}

TEST(sums_balance_whatever_comes)
{
	for (uint32_t round = 0; round < 128; round++) {
		struct merge_options options = merger_every_second();
		struct merger m;

		options.per_interface = round & 1;
		options.active_timeout_ns = round & 2 ? 5000 * NSEC_PER_MSEC : 0;
		options.idle_timeout_ns = round & 4 ? 500 * NSEC_PER_MSEC :
						      3000 * NSEC_PER_MSEC;
		options.max_flows = round & 8 ? 20 : 1 << 20;
		options.min_bytes = round & 16 ? 20 * WORLD_BYTES : 0;
		merger_open_in(&m, options, 1, merger_bridged);
		m.merge.options.rates = round & 32 ? &one_packet_of_4 :
						     &all_packets;
		for (int64_t t = 0; t < 12; t++) {
			merge_begin(&m.merge,
				    t == 11	   ? MERGE_FINAL :
				    !test_below(4) ? MERGE_EARLY :
						     MERGE_INTERVAL,
				    (t + 1) * NSEC_PER_SEC);
			feed(&m, t * NSEC_PER_SEC);
			merger_end(&m);
		}
		assert_int_equal(m.merge.pending.packets, 0);
		assert_int_equal(m.merge.table.count, 0);
		if (options.per_interface)
			assert_int_equal(merger_repeated(&m), 0);
		merger_close(&m);
	}
}

static uint32_t count_brief(const struct flow_table *table)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n_buckets; i++)
		for (const struct flow *flow = table->buckets[i].first; flow;
		     flow = flow->next)
			n += flow->is_brief;
	return n;
}

static void ignore_note(void *data, const struct flow_entry *entry, void *ctx)
{
	(void)data;
	(void)entry;
	(void)ctx;
}

static void ignore_join(void *data, const void *other, void *ctx)
{
	(void)data;
	(void)other;
	(void)ctx;
}

static void ignore_fill(void *data, struct netobs_flow *record, void *ctx)
{
	(void)data;
	(void)record;
	(void)ctx;
}

static int compare_records(const void *left, const void *right)
{
	const struct netobs_flow *a = left, *b = right;
	const uint64_t x[] = { a->src_port,	     a->proto,
			       a->points[0].ifindex, a->points[0].direction,
			       a->packets,	     a->start_ns };
	const uint64_t y[] = { b->src_port,	     b->proto,
			       b->points[0].ifindex, b->points[0].direction,
			       b->packets,	     b->start_ns };

	for (size_t i = 0; i < ARRAY_SIZE(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

/* In an order that does not depend on when they were reported. */
static struct netobs_flow *sorted_records(const struct merger *m)
{
	struct netobs_flow *flows =
		calloc(m->witness.n_flows + 1, sizeof(*flows));

	for (uint32_t i = 0; i < m->witness.n_flows; i++) {
		flows[i] = m->witness.flows[i].flow;
		flows[i].points = m->witness.flows[i].points;
	}
	qsort(flows, m->witness.n_flows, sizeof(*flows), compare_records);
	return flows;
}

static void assert_same_records(const struct merger *a, const struct merger *b)
{
	struct netobs_flow *x = sorted_records(a), *y = sorted_records(b);

	assert_int_equal(a->witness.n_flows, b->witness.n_flows);
	for (uint32_t i = 0; i < a->witness.n_flows; i++) {
		assert_int_equal(x[i].n_points, y[i].n_points);
		x[i].points = y[i].points = NULL;
		assert_memory_equal(&x[i], &y[i], sizeof(x[i]));
	}
	free(x);
	free(y);
}

/* Some come as they would from L1, and some for a second time. */
static void feed_both(struct merger m[2], int64_t from_ns)
{
	struct flow_entry entries[50];

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i] = anything(from_ns);
		if (!test_below(8))
			entries[i].key.vlan = VLAN_PRESENT | test_below(2);
		/* Seen until the end of the interval: it may return. */
		if (test_below(2))
			entries[i].tally.last_ns = from_ns + 999 * NSEC_PER_MSEC;
		for (int k = 0; k < 2 && i % 10 == 0; k++)
			merger_keep_entry(&m[k], &entries[i]);
	}
	for (int k = 0; k < 2; k++)
		merger_deliver(&m[k], entries, ARRAY_SIZE(entries));
}

/* With extras, all flows are full. */
TEST(brief_flows_change_no_record)
{
	const struct flow_extra extra = { .size = 8,
					  .note = ignore_note,
					  .join = ignore_join,
					  .fill = ignore_fill };
	uint32_t n_brief = 0;

	for (uint32_t round = 0; round < 128; round++) {
		struct merge_options options = merger_every_second();
		struct merger m[2];

		options.active_timeout_ns = round & 1 ? 3000 * NSEC_PER_MSEC : 0;
		options.min_bytes = round & 2 ? 3 * WORLD_BYTES : 0;
		merger_open_in(&m[0], options, 1, merger_bridged);
		options.extras = (struct flow_extras){ &extra, 1 };
		merger_open_in(&m[1], options, 1, merger_bridged);
		for (int k = 0; k < 2; k++)
			m[k].merge.options.rates =
				round & 4 ? &one_packet_of_4 : &all_packets;
		for (int64_t t = 0; t < 12; t++) {
			for (int k = 0; k < 2; k++)
				merge_begin(&m[k].merge,
					    t == 11 ? MERGE_FINAL : MERGE_INTERVAL,
					    (t + 1) * NSEC_PER_SEC);
			feed_both(m, t * NSEC_PER_SEC);
			merger_end(&m[0]);
			merger_end(&m[1]);
			assert_same_records(&m[0], &m[1]);
			assert_int_equal(m[0].merge.table.count,
					 m[1].merge.table.count);
			assert_memory_equal(&m[0].merge.inferred,
					    &m[1].merge.inferred,
					    sizeof(struct volume));
			n_brief += count_brief(&m[0].merge.table);
			assert_int_equal(count_brief(&m[1].merge.table), 0);
		}
		merger_close(&m[0]);
		merger_close(&m[1]);
	}
	assert_true(n_brief > 128);
}

/* Each record by itself; packets that were not reported do not come again. */
BRIDGED_TEST(small_records_are_counted_and_not_reported)
{
	m->merge.options.min_bytes = 5 * WORLD_BYTES;
	merger_drain(m, MERGE_INTERVAL, 1000, 1, IN, 4, 100, 700);
	assert_int_equal(m->witness.n_flows, 0);
	merger_drain(m, MERGE_INTERVAL, 2000, 1, IN, 5, 1100, 1700);
	merger_assert_record(m, 1, 5, NETOBS_END_ACTIVE);
	merger_drain(m, MERGE_FINAL, 3000, 1, IN, 3, 2100, 2700);
	assert_int_equal(m->witness.n_flows, 1);
	assert_int_equal(m->merge.small.packets, 7);
	assert_int_equal(m->merge.small.bytes, 7 * WORLD_BYTES);
}

/* Drains before an interval ends divide its flows into parts. */
BRIDGED_TEST(bytes_of_an_interval_decide_and_not_those_of_its_parts)
{
	struct flow_entry entry = merger_entry(1, IN, 2, 700, 800);

	m->merge.options.min_bytes = 5 * WORLD_BYTES;
	merger_drain(m, MERGE_EARLY, 400, 1, IN, 3, 100, 300);
	merger_begin(m, MERGE_EARLY, 900);
	merger_deliver(m, &entry, 1);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 0);
	merger_begin(m, MERGE_INTERVAL, 1000);
	merger_end(m);
	merger_assert_record(m, 1, 5, NETOBS_END_ACTIVE);
	assert_int_equal(m->merge.small.packets, 0);
}

/* Its first sight may have been sampled, too: then it would count twice. */
TEST(further_sights_of_a_sample_are_not_reported)
{
	const struct flow_entry again = merger_entry(4, ON, 10, 100, 700);
	struct merger m;

	for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
		merger_open_in(&m, merger_every_second(), 1, merger_bridged);
		m.merge.options.rates = is_sampled ? &one_packet_of_4 :
						     &all_packets;
		merger_begin(&m, MERGE_FINAL, 1000);
		merger_deliver(&m, &again, 1);
		merger_end(&m);
		assert_int_equal(m.witness.n_flows, !is_sampled);
		assert_int_equal(m.merge.inferred.packets, is_sampled ? 0 : 10);
		merger_close(&m);
	}
}

TEST(records_name_what_they_are_a_sample_of)
{
	const struct rates rates = { .ids = { { 100, SAMPLE_FLOWS } } };
	struct merge_options options = merger_every_second();
	struct flow_entry entries[2];
	struct netobs_flow flow;

	pair(entries);
	flow = record_of(entries, options);
	assert_int_equal(flow.has & NETOBS_HAS_SAMPLING, 0);
	options.rates = &rates;
	flow = record_of(entries, options);
	assert_int_equal(flow.has & NETOBS_HAS_SAMPLING, NETOBS_HAS_SAMPLING);
	assert_int_equal(flow.sampling, 100);
	assert_int_equal(flow.sampling_mode, NETOBS_SAMPLE_FLOWS);
	assert_int_equal(flow.packets, 7); /* not scaled */
}
