// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* When flows are reported, with what, and that the sums add up. */
#include "bpf/parse/headers.h"
#include "lib_merger.h"
#include "lib_test.h"

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, ACK = 0x10 };

#define PATIENT_TCP(flags) \
	.is_patient = true, .proto = IP_PROTO_TCP, .marks = (flags)

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

#define DRAINED(first, last, how, kept, why, ...)                      \
	{                                                              \
		.first_ms = (first), .last_ms = (last), .mode = (how), \
		.remembered = (kept), .reason = (why), ##__VA_ARGS__   \
	}

/* An entry, how it is drained, and what comes of it: a record at once or later, and a flow that is remembered. */
static const struct drained {
	int64_t first_ms, last_ms; /* the table is flipped at 1000 */
	enum merge_mode mode;
	uint32_t remembered;
	int reason;	  /* of the record; 0: it waits */
	uint32_t n_netns; /* 0: 1 */
	bool is_patient, per_interface, single_point;
	int64_t idle_ms; /* 0: 15000 */
	uint8_t proto;	 /* 0: UDP */
	uint32_t marks;
} drained[] = {
	/* A reported flow is remembered while it may turn up elsewhere: longer with queues between namespaces. */
	DRAINED(100, 999, MERGE_INTERVAL, 1, NETOBS_END_ACTIVE),
	DRAINED(100, 950, MERGE_INTERVAL, 1, NETOBS_END_ACTIVE),
	DRAINED(100, 949, MERGE_INTERVAL, 0, NETOBS_END_ACTIVE),
	DRAINED(100, 200, MERGE_INTERVAL, 0, NETOBS_END_ACTIVE),
	DRAINED(100, 949, MERGE_INTERVAL, 1, NETOBS_END_ACTIVE, .n_netns = 2),
	DRAINED(100, 750, MERGE_INTERVAL, 1, NETOBS_END_ACTIVE, .n_netns = 2),
	DRAINED(100, 749, MERGE_INTERVAL, 0, NETOBS_END_ACTIVE, .n_netns = 2),
	/* A young one waits where points are merged. */
	DRAINED(995, 999, MERGE_INTERVAL, 1, 0),
	DRAINED(995, 999, MERGE_EARLY, 1, 0),
	DRAINED(950, 999, MERGE_INTERVAL, 1, NETOBS_END_ACTIVE),
	DRAINED(999, 999, MERGE_INTERVAL, 0, NETOBS_END_ACTIVE,
		.per_interface = true),
	DRAINED(999, 999, MERGE_INTERVAL, 0, NETOBS_END_ACTIVE,
		.single_point = true),
	DRAINED(999, 999, MERGE_FINAL, 0, NETOBS_END_FORCED),
	/* TCP is reported when it has ended. */
	DRAINED(100, 500, MERGE_INTERVAL, 1, 0, PATIENT_TCP(SYN | ACK)),
	DRAINED(100, 500, MERGE_INTERVAL, 0, NETOBS_END_DETECTED,
		PATIENT_TCP(FIN | ACK)),
	DRAINED(100, 500, MERGE_INTERVAL, 0, NETOBS_END_DETECTED,
		PATIENT_TCP(RST)),
	DRAINED(100, 500, MERGE_EARLY, 0, NETOBS_END_DETECTED, PATIENT_TCP(RST)),
	DRAINED(100, 500, MERGE_FINAL, 0, NETOBS_END_DETECTED, PATIENT_TCP(FIN)),
	DRAINED(100, 500, MERGE_FINAL, 0, NETOBS_END_FORCED, PATIENT_TCP(SYN)),
	DRAINED(100, 500, MERGE_INTERVAL, 1, 0, .is_patient = true, .marks = FIN),
	/* An idle one is not called active. */
	DRAINED(100, 600, MERGE_INTERVAL, 0, NETOBS_END_IDLE, .idle_ms = 400),
	/* Room in the kernel's table is all that an early drain wants. */
	DRAINED(100, 500, MERGE_EARLY, 0, NETOBS_END_RESOURCES),
	DRAINED(100, 500, MERGE_EARLY, 1, 0, .is_patient = true),
};

static struct merge_options options_of(const struct drained *row)
{
	struct merge_options options = row->is_patient ? merger_every_minute() :
							 merger_every_second();

	options.per_interface = row->per_interface;
	options.single_point = row->single_point;
	if (row->idle_ms)
		options.idle_timeout_ns = row->idle_ms * NSEC_PER_MSEC;
	return options;
}

/* @is_delivered: as after reading a large table */
static void drain_one(struct merger *m, const struct drained *row,
		      bool is_delivered)
{
	struct flow_entry entry =
		merger_entry(1, IN, 4, row->first_ms, row->last_ms);

	entry.key.proto = row->proto ?: IP_PROTO_UDP;
	entry.tally.attrs.marks = row->marks;
	merger_begin(m, row->mode, 1000);
	if (is_delivered)
		merger_deliver(m, &entry, 1);
	else
		merger_keep_entry(m, &entry);
	if (is_delivered && row->mode == MERGE_INTERVAL && !row->proto)
		assert_int_equal(m->witness.n_flows, row->reason != 0);
	merger_end(m);
}

TEST(flows_are_reported_when_they_are_due)
{
	for (size_t i = 0; i < 2 * ARRAY_SIZE(drained); i++) {
		const struct drained *row = &drained[i / 2];
		struct merger m;

		print_message("row %zu\n", i / 2);
		merger_open_in(&m, options_of(row), row->n_netns ?: 1, NULL);
		drain_one(&m, row, i % 2);
		assert_int_equal(m.witness.n_flows, row->reason != 0);
		if (row->reason)
			merger_assert_record(&m, 1, 4, row->reason);
		assert_int_equal(m.merge.table.count, row->remembered);
		assert_int_equal(m.merge.pending.packets, row->reason ? 0 : 4);
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
