// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Data that features keep with each flow. */
#include "lib_merger.h"
#include "lib_test.h"

/* Two features: how many entries a flow had, and its packets twice. */
struct doubled {
	uint64_t packets;
	uint64_t again;
};

/* What records were filled from. */
struct filled {
	uint32_t records;
	uint64_t entries;
	uint64_t packets;
	uint64_t record_packets;
};

static void note_entry(void *data, const struct flow_entry *entry, void *ctx)
{
	(void)entry;
	(void)ctx;
	++*(uint32_t *)data;
}

static void join_entries(void *data, const void *other, void *ctx)
{
	(void)ctx;
	*(uint32_t *)data += *(const uint32_t *)other;
}

static void fill_entries(void *data, struct netobs_flow *record, void *ctx)
{
	struct filled *filled = ctx;

	filled->records++;
	filled->entries += *(uint32_t *)data;
	filled->record_packets += record->packets;
	*(uint32_t *)data = 0;
}

static void note_packets(void *data, const struct flow_entry *entry, void *ctx)
{
	struct doubled *doubled = data;

	(void)ctx;
	assert_int_equal((uintptr_t)data % 8, 0);
	assert_int_equal(doubled->packets, doubled->again);
	doubled->packets += entry->tally.packets;
	doubled->again += entry->tally.packets;
}

static void join_packets(void *data, const void *other, void *ctx)
{
	struct doubled *doubled = data;

	(void)ctx;
	doubled->packets += ((const struct doubled *)other)->packets;
	doubled->again += ((const struct doubled *)other)->again;
}

static void fill_packets(void *data, struct netobs_flow *record, void *ctx)
{
	struct filled *filled = ctx;

	(void)record;
	filled->packets += ((const struct doubled *)data)->packets;
	*(struct doubled *)data = (struct doubled){ 0 };
}

/* A merger with the data of both features beside its flows. */
struct fixture {
	struct merger merger;
	struct filled filled;
	struct flow_extra list[2];
};

static void open_fixture(struct fixture *f)
{
	struct merge_options options = merger_every_second();

	f->list[0] = (struct flow_extra){ .size = sizeof(uint32_t),
					  .note = note_entry,
					  .join = join_entries,
					  .fill = fill_entries,
					  .ctx = &f->filled };
	f->list[1] = (struct flow_extra){ .size = sizeof(struct doubled),
					  .note = note_packets,
					  .join = join_packets,
					  .fill = fill_packets,
					  .ctx = &f->filled };
	options.extras = (struct flow_extras){ f->list, ARRAY_SIZE(f->list) };
	merger_open_in(&f->merger, options, 1, merger_bridged);
	assert_int_equal(f->merger.merge.table.extra_size, 24);
}

static void close_fixture(struct fixture *f)
{
	merger_close(&f->merger);
}

TEST_FIXTURE(struct fixture, open_fixture, close_fixture)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(records_have_the_data_of_all_points)
{
	for (uint32_t i = 1; i <= 3; i++) {
		merger_begin(&f->merger, MERGE_INTERVAL, i * 1000);
		merger_keep(&f->merger, 1, IN, 10, i * 1000 - 900,
			    i * 1000 - 500);
		merger_keep(&f->merger, 4, ON, 9, i * 1000 - 900, i * 1000 - 500);
		merger_end(&f->merger);
		assert_int_equal(f->filled.records, i);
		assert_int_equal(f->filled.entries, 2 * i);
		assert_int_equal(f->filled.packets, 19 * i);
		assert_int_equal(f->filled.record_packets, 10 * i);
	}
}

CASE(flows_that_are_not_kept_have_their_data)
{
	struct flow_entry entries[100];

	for (uint32_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i] = merger_entry(1, IN, i + 1, 100, 500);
		entries[i].key.src_port = i + 1;
	}
	merger_begin(&f->merger, MERGE_INTERVAL, 1000);
	merger_deliver(&f->merger, entries, ARRAY_SIZE(entries));
	assert_true(f->filled.records >= 90);
	merger_end(&f->merger);
	assert_int_equal(f->filled.records, ARRAY_SIZE(entries));
	assert_int_equal(f->filled.entries, ARRAY_SIZE(entries));
	assert_int_equal(f->filled.packets, 5050);
}

/* The one that leaves with other tags turns out to be the one that came in. */
CASE(flows_that_become_one_join_their_data)
{
	struct flow_entry in = merger_entry(1, IN, 5, 100, 200);
	struct flow_entry out = merger_entry(4, ON, 5, 100, 200);

	in.key.vlan = VLAN_PRESENT | 10;
	out.key.vlan = VLAN_PRESENT | 20;
	merger_begin(&f->merger, MERGE_FINAL, 1000);
	merger_keep_entry(&f->merger, &out);
	merger_keep_entry(&f->merger, &in);
	assert_int_equal(f->merger.merge.table.count, 2);
	merger_end(&f->merger);
	assert_int_equal(f->filled.records, 1);
	assert_int_equal(f->filled.entries, 2);
	assert_int_equal(f->filled.packets, 10);
	assert_int_equal(f->filled.record_packets, 5);
}

/* While the table grows and shrinks. */
CASE(data_stay_with_their_flow)
{
	enum { FLOWS = 20000 };

	for (int interval = 1; interval <= 3; interval++) {
		uint32_t n = interval == 2 ? FLOWS : FLOWS / 100;

		merger_begin(&f->merger, MERGE_INTERVAL, interval * 1000);
		for (uint32_t i = 0; i < 2 * n; i++) {
			struct flow_entry entry =
				merger_entry(1, IN, 1, interval * 1000 - 900,
					     interval * 1000 - 500);

			entry.key.src_port = i % n;
			merger_keep_entry(&f->merger, &entry);
		}
		merger_end(&f->merger);
		assert_int_equal(f->filled.entries, f->filled.packets);
		assert_int_equal(f->filled.packets, f->filled.record_packets);
		assert_int_equal(f->filled.packets, f->merger.witness.packets);
	}
}

MERGER_TEST(flows_without_features_have_no_room)
{
	assert_int_equal(m->merge.table.extra_size, 0);
}
