// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* When flows are reported, with what, and that the sums add up. */
#include "bpf/parse/headers.h"
#include "lib_merger.h"
#include "lib_test.h"

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, ACK = 0x10 };

MERGER_TEST(packets_on_their_way_at_the_flip_are_not_counted_again)
{
	merger_begin(m, MERGE_INTERVAL, 1000);
	merger_keep(m, 1, IN, 10, 100, 999);
	merger_keep(m, 2, ON, 8, 101, 999);
	merger_end(m);
	merger_assert_record(m, 1, 10, NETOBS_END_ACTIVE);
	assert_int_equal(merger_repeated(m), 8);

	merger_drain(m, MERGE_INTERVAL, 2000, 2, ON, 2, 1000, 1001);
	assert_int_equal(m->witness.n_flows, 1);
	assert_int_equal(merger_repeated(m), 10);

	merger_begin(m, MERGE_INTERVAL, 3000);
	merger_end(m);
	assert_int_equal(m->merge.table.count, 0);
}

/* How long a reported flow is remembered, in case it turns up elsewhere. */
TEST(flow_is_remembered_while_it_may_return)
{
	static const struct {
		uint32_t n_netns;
		int64_t last_ms;
		uint32_t remembered;
	} cases[] = {
		{ 1, 999, 1 }, { 1, 950, 1 }, { 1, 949, 0 },
		{ 1, 200, 0 }, { 2, 949, 1 }, /* queues between namespaces */
		{ 2, 750, 1 }, { 2, 749, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct merger m;

		merger_open_in(&m, merger_every_second(), cases[i].n_netns, NULL);
		merger_drain(&m, MERGE_INTERVAL, 1000, 1, IN, 1, 100,
			     cases[i].last_ms);
		merger_assert_record(&m, 1, 1, NETOBS_END_ACTIVE);
		if (m.merge.table.count != cases[i].remembered)
			fail_msg("case %zu: %u flows", i, m.merge.table.count);
		merger_close(&m);
	}
}

MERGER_TEST(flow_too_young_waits_one_drain)
{
	merger_drain(m, MERGE_INTERVAL, 1000, 1, IN, 3, 995, 999);
	assert_int_equal(m->witness.n_flows, 0);
	assert_int_equal(m->merge.pending.packets, 3);

	merger_begin(m, MERGE_INTERVAL, 2000);
	merger_keep(m, 1, IN, 2, 1000, 1001);
	merger_keep(m, 2, ON, 5, 995, 1001);
	merger_end(m);
	merger_assert_record(m, 1, 5, NETOBS_END_ACTIVE);
	assert_int_equal(merger_last_record(m)->n_points, 2);
	assert_int_equal(m->merge.pending.packets, 0);
}

TEST(youth_matters_only_where_points_are_merged)
{
	static const struct {
		int64_t first_ms;
		bool per_interface, single_point;
		enum merge_mode mode;
		uint32_t records;
	} cases[] = {
		{ 995, false, false, MERGE_INTERVAL, 0 },
		{ 995, false, false, MERGE_EARLY, 0 },
		{ 950, false, false, MERGE_INTERVAL, 1 },
		{ 999, true, false, MERGE_INTERVAL, 1 },
		{ 999, false, true, MERGE_INTERVAL, 1 },
		{ 999, false, false, MERGE_FINAL, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct merge_options options = merger_every_second();
		struct merger m;

		options.per_interface = cases[i].per_interface;
		options.single_point = cases[i].single_point;
		merger_open(&m, options);
		merger_drain(&m, cases[i].mode, 1000, 1, IN, 1,
			     cases[i].first_ms, 999);
		if (m.witness.n_flows != cases[i].records)
			fail_msg("case %zu: %u records", i, m.witness.n_flows);
		merger_close(&m);
	}
}

TEST(tcp_is_reported_when_it_has_ended)
{
	static const struct {
		uint8_t proto;
		uint32_t marks;
		enum merge_mode mode;
		int reason; /* 0: no record */
	} cases[] = {
		{ IP_PROTO_TCP, SYN | ACK, MERGE_INTERVAL, 0 },
		{ IP_PROTO_TCP, FIN | ACK, MERGE_INTERVAL, NETOBS_END_DETECTED },
		{ IP_PROTO_TCP, RST, MERGE_INTERVAL, NETOBS_END_DETECTED },
		{ IP_PROTO_TCP, RST, MERGE_EARLY, NETOBS_END_DETECTED },
		{ IP_PROTO_TCP, FIN, MERGE_FINAL, NETOBS_END_DETECTED },
		{ IP_PROTO_TCP, SYN, MERGE_FINAL, NETOBS_END_FORCED },
		{ IP_PROTO_UDP, FIN, MERGE_INTERVAL, 0 },
	};
	struct merge_options options = merger_every_minute();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow_entry entry = merger_entry(1, IN, 4, 100, 500);
		struct merger m;

		merger_open(&m, options);
		merger_begin(&m, cases[i].mode, 1000);
		entry.key.proto = cases[i].proto;
		entry.tally.attrs.marks = cases[i].marks;
		merger_keep_entry(&m, &entry);
		merger_end(&m);
		assert_int_equal(m.witness.n_flows, cases[i].reason != 0);
		if (cases[i].reason)
			merger_assert_record(&m, 1, 4, cases[i].reason);
		merger_close(&m);
	}
}

MERGER_TEST(active_timeout_reports_on_the_way)
{
	m->merge.options.active_timeout_ns = 3000 * NSEC_PER_MSEC;
	for (uint32_t i = 1; i <= 9; i++) {
		merger_drain(m, MERGE_INTERVAL, i * 1000, 1, IN, 1,
			     i * 1000 - 900, i * 1000 - 100);
		assert_int_equal(m->witness.n_flows, i / 3);
		assert_int_equal(m->merge.pending.packets, i % 3);
		if (i % 3 == 0)
			merger_assert_record(m, i / 3, 3, NETOBS_END_ACTIVE);
	}
	assert_int_equal(merger_last_record(m)->start_ns, 6100 * NSEC_PER_MSEC);
	assert_int_equal(merger_last_record(m)->end_ns, 8900 * NSEC_PER_MSEC);
}

MERGER_TEST(idle_timeout_ends_a_flow)
{
	m->merge.options.active_timeout_ns = 60000 * NSEC_PER_MSEC;
	m->merge.options.idle_timeout_ns = 2000 * NSEC_PER_MSEC;
	merger_drain(m, MERGE_INTERVAL, 1000, 1, IN, 7, 100, 500);
	merger_begin(m, MERGE_INTERVAL, 2000);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 0);
	assert_int_equal(m->merge.pending.packets, 7);
	merger_begin(m, MERGE_INTERVAL, 3000);
	merger_end(m);
	merger_assert_record(m, 1, 7, NETOBS_END_IDLE);
	assert_int_equal(m->merge.table.count, 0);
}

MERGER_TEST(idle_flow_is_not_called_active)
{
	m->merge.options.idle_timeout_ns = 400 * NSEC_PER_MSEC;
	merger_drain(m, MERGE_INTERVAL, 1000, 1, IN, 7, 100, 600);
	merger_assert_record(m, 1, 7, NETOBS_END_IDLE);
}

TEST(early_drain_reports_for_lack_of_room)
{
	struct merge_options patient = merger_every_minute();
	struct merger m;

	merger_open(&m, merger_every_second());
	merger_drain(&m, MERGE_EARLY, 1000, 1, IN, 2, 100, 500);
	merger_assert_record(&m, 1, 2, NETOBS_END_RESOURCES);
	merger_close(&m);

	/* Room in the kernel's table is all that it wants. */
	merger_open(&m, patient);
	merger_drain(&m, MERGE_EARLY, 1000, 1, IN, 2, 100, 500);
	assert_int_equal(m.witness.n_flows, 0);
	assert_int_equal(m.merge.pending.packets, 2);
	merger_close(&m);
}

/* What is asked for at once is given, due or not, and is not counted again. */
TEST(explicit_drain_reports_all)
{
	struct merger m;

	merger_open(&m, merger_every_minute());
	merger_drain(&m, MERGE_ALL, 1000, 1, IN, 4, 995, 999);
	merger_assert_record(&m, 1, 4, NETOBS_END_ACTIVE);
	merger_drain(&m, MERGE_ALL, 1001, 2, ON, 4, 1000, 1000);
	assert_int_equal(m.witness.n_flows, 1);
	assert_int_equal(merger_repeated(&m), 4);
	merger_close(&m);
}

MERGER_TEST(shutdown_reports_all_and_keeps_nothing)
{
	m->merge.options.active_timeout_ns = 60000 * NSEC_PER_MSEC;
	merger_drain(m, MERGE_INTERVAL, 1000, 1, IN, 2, 100, 999);
	merger_drain(m, MERGE_FINAL, 1500, 1, IN, 3, 1100, 1499);
	merger_assert_record(m, 1, 5, NETOBS_END_FORCED);
	assert_int_equal(m->merge.table.count, 0);
	assert_int_equal(m->merge.pending.packets, 0);
}

static void keep_flows(struct merger *m, uint32_t n, int64_t first_ms)
{
	for (uint32_t i = 0; i < n; i++) {
		struct flow_entry entry =
			merger_entry(1, IN, 1, first_ms, first_ms + 10);

		entry.key.src_port = 1 + i;
		merger_keep_entry(m, &entry);
	}
}

MERGER_TEST(table_too_crowded_is_emptied)
{
	m->merge.options.active_timeout_ns = 60000 * NSEC_PER_MSEC;
	m->merge.options.max_flows = 10;
	merger_begin(m, MERGE_INTERVAL, 1000);
	keep_flows(m, 10, 100);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 0);

	merger_begin(m, MERGE_INTERVAL, 2000);
	keep_flows(m, 11, 1100);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 11);
	assert_int_equal(m->witness.packets, 21);
	assert_int_equal(merger_last_record(m)->end_reason, NETOBS_END_RESOURCES);
	assert_int_equal(m->merge.table.count, 0);

	merger_begin(m, MERGE_INTERVAL, 3000);
	keep_flows(m, 10, 2100);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 11);
	assert_int_equal(m->merge.pending.packets, 10);
}

MERGER_TEST(per_interface_reports_each_point)
{
	m->merge.options.per_interface = true;
	merger_begin(m, MERGE_INTERVAL, 1000);
	merger_keep(m, 1, IN, 10, 995, 999);
	merger_keep(m, 2, ON, 8, 995, 999);
	merger_keep(m, 2, ON, 1, 996, 999);
	merger_keep(m, 2, IN, 1, 996, 999);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 3);
	assert_int_equal(m->witness.packets, 20);
	assert_int_equal(merger_repeated(m), 0);
	assert_int_equal(m->merge.table.count, 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct witness_flow *seen = &m->witness.flows[i];
		bool is_out = seen->points[0].direction == NETOBS_EGRESS;

		assert_int_equal(seen->flow.n_points, 1);
		assert_int_equal(seen->flow.packets,
				 is_out			      ? 9 :
				 seen->points[0].ifindex == 1 ? 10 :
								1);
	}
}

MERGER_TEST(delivered_flows_that_do_not_repeat_are_not_kept)
{
	struct flow_entry entries[100];

	for (uint32_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i] = merger_entry(1, IN, 1, 100, 500);
		entries[i].key.src_port = i + 1;
	}
	/* Seen at a second point. */
	entries[1].key.src_port = entries[0].key.src_port;
	entries[1].key.ifindex = 2;
	entries[1].key.flags = ON;
	merger_begin(m, MERGE_INTERVAL, 1000);
	merger_deliver(m, entries, ARRAY_SIZE(entries));
	/* A hash may make an innocent one look repeated. */
	assert_in_range(m->merge.table.count, 1, 10);
	assert_in_range(m->witness.n_flows, 90, 98);
	merger_end(m);
	assert_int_equal(m->witness.n_flows, 99);
	assert_int_equal(m->witness.packets, 99);
	assert_int_equal(merger_repeated(m), 1);
	assert_int_equal(m->merge.table.count, 1); /* it may return once more */
}

MERGER_TEST(delivered_flows_that_are_known_are_merged)
{
	struct flow_entry entry = merger_entry(1, IN, 5, 1100, 1500);

	merger_drain(m, MERGE_INTERVAL, 1000, 1, IN, 3, 995, 999);
	assert_int_equal(m->witness.n_flows, 0);
	merger_begin(m, MERGE_INTERVAL, 2000);
	merger_deliver(m, &entry, 1);
	assert_int_equal(m->witness.n_flows, 0);
	merger_end(m);
	merger_assert_record(m, 1, 8, NETOBS_END_ACTIVE);
	assert_int_equal(merger_last_record(m)->start_ns, 995 * NSEC_PER_MSEC);
}

TEST(delivered_flows_that_are_not_due_or_may_return_are_kept)
{
	static const struct {
		int64_t first_ms, last_ms;
		bool patient;
		uint32_t at_once, in_the_end, kept;
	} cases[] = {
		{ 100, 500, false, 1, 1, 0 },
		{ 100, 999, false, 1, 1, 1 },
		{ 995, 999, false, 0, 0, 1 },
		{ 100, 500, true, 0, 0, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow_entry entry = merger_entry(
			1, IN, 5, cases[i].first_ms, cases[i].last_ms);
		struct merge_options options = cases[i].patient ?
						       merger_every_minute() :
						       merger_every_second();
		struct merger m;

		merger_open(&m, options);
		merger_begin(&m, MERGE_INTERVAL, 1000);
		merger_deliver(&m, &entry, 1);
		assert_int_equal(m.witness.n_flows, cases[i].at_once);
		merger_end(&m);
		assert_int_equal(m.witness.n_flows, cases[i].in_the_end);
		assert_int_equal(m.merge.table.count, cases[i].kept);
		merger_close(&m);
	}
}
