// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* More flows than L2 takes: to the ring buffer, then counted as lost. */
#include "prog_test.h"

#include <errno.h>
#include <unistd.h>

enum { ACK = 0x10, FLOWS = 500 };

static void send_flows(struct prog *prog, unsigned int flows)
{
	for (unsigned int i = 0; i < flows; i++)
		prog_test_tcp(prog, 1 + i, ACK);
}

static struct count lost_of(const struct prog *prog, enum lost_reason reason)
{
	return prog_counters(prog, 0).lost[reason];
}

static void full_table_spills_into_the_ring(void **state)
{
	struct prog_options options = { .l2_buckets = 1 };
	struct prog *prog = prog_test_open(&options);
	const struct prog_flows *flows;

	(void)state;
	send_flows(prog, FLOWS);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, FLOWS);
	assert_int_equal(prog->n_spilled,
			 FLOWS - BUCKET_SLOTS - prog_l1_used(prog, 0));
	assert_int_equal(prog_counters(prog, 0).spilled.packets, prog->n_spilled);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets, 0);
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow_key key = prog_test_tcp_key(1 + i);

		assert_int_equal(prog_test_tally(flows, &key)->packets, 1);
	}
}

static void full_ring_loses_and_counts(void **state)
{
	struct prog_options options = { .l2_buckets = 1 };
	struct prog *prog;
	const struct prog_flows *flows;
	struct count lost;

	(void)state;
	options.ring_bytes = sysconf(_SC_PAGESIZE);
	prog = prog_test_open(&options);
	send_flows(prog, FLOWS);
	lost = lost_of(prog, LOST_TABLE_FULL);
	assert_in_range(lost.packets, 1, FLOWS);
	assert_int_equal(lost.bytes, lost.packets * PROG_TEST_TCP_BYTES);
	assert_int_equal(lost_of(prog, LOST_NO_MEMORY).packets, 0);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, FLOWS - lost.packets);
}

/* An entry of L1 that is lost takes all its packets with it, not the last one. */
static void lost_entry_is_lost_with_all_its_packets(void **state)
{
	struct prog_options options = { .l2_buckets = 1 };
	struct prog *prog;
	struct count before, after;
	unsigned int rival = 0;

	(void)state;
	options.ring_bytes = sysconf(_SC_PAGESIZE);
	prog = prog_test_open(&options);
	send_flows(prog, FLOWS); /* fills table and ring */
	while (prog_test_rival(prog, rival) <= FLOWS)
		rival++;
	for (int i = 0; i < 5; i++)
		prog_test_tcp(prog, prog_test_rival(prog, rival), ACK);
	do { /* newcomers, until it is its turn */
		before = lost_of(prog, LOST_TABLE_FULL);
		prog_test_tcp(prog, prog_test_rival(prog, ++rival), ACK);
		after = lost_of(prog, LOST_TABLE_FULL);
		assert_in_range(rival, 0, 500);
	} while (after.packets - before.packets == 1);
	assert_int_equal(after.packets - before.packets, 5);
	assert_int_equal(after.bytes - before.bytes, 5 * PROG_TEST_TCP_BYTES);
	prog_test_flows(prog, 0);
}

static void full_table_still_merges_flows_it_has(void **state)
{
	enum { ROUNDS = 100 };
	struct prog_options options = { .l2_buckets = 1 };
	struct prog *prog = prog_test_open(&options);
	struct flow_key key = prog_test_tcp_key(prog_test_rival(prog, 1));
	uint16_t ports[3] = { 1, prog_test_rival(prog, 0),
			      prog_test_rival(prog, 1) };
	struct flow_tally l2;
	unsigned int spilled;

	(void)state;
	for (int i = 0; i < 3; i++)
		prog_test_tcp(prog, ports[i], ACK);
	assert_int_equal(prog_l2_lookup(prog, 0, &key, &l2), 0);
	send_flows(prog, FLOWS);
	prog_test_flows(prog, 0); /* empties the ring */
	spilled = prog->n_spilled;
	for (int i = 0; i < ROUNDS; i++)
		prog_test_tcp(prog, ports[2], ACK);
	assert_int_equal(prog_test_tally(prog_test_flows(prog, 0), &key)->packets,
			 ROUNDS + 1 + (ports[2] <= FLOWS));
	/* Its place in L1 cost one of two entries theirs. */
	assert_in_range(prog->n_spilled - spilled, 0, 1);
}

static void limit_keeps_flows_out_of_the_table(void **state)
{
	struct prog_options options = { .l2_limit = 100 };
	struct prog *prog = prog_test_open(&options);

	(void)state;
	assert_int_equal(prog_pin(0), 0);
	send_flows(prog, FLOWS);
	/* CPUs tell each other in steps. */
	assert_in_range(prog->cpus[0].inserts[0], 100, 100 + 16);
	assert_int_equal(prog->n_spilled, 0);
	assert_int_equal(prog_test_flows(prog, 0)->n, FLOWS);
	assert_int_equal(prog->n_spilled, FLOWS - prog->cpus[0].inserts[0] -
						  prog_l1_used(prog, 0));
}

static unsigned int count_taken(const struct flow_bucket *buckets, uint32_t n)
{
	unsigned int taken = 0;

	for (uint32_t i = 0; i < n * BUCKET_SLOTS; i++)
		taken += buckets[i / BUCKET_SLOTS].tags[i % BUCKET_SLOTS] != 0;
	return taken;
}

/* A larger table is used as soon as it is there; the older one is left as it is. */
static void new_flows_go_to_the_newest_table(void **state)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	struct flow_bucket *added;
	struct table table;

	(void)state;
	send_flows(prog, FLOWS);
	/* The other generation's table serves as well. */
	table = prog->l2[1];
	added = prog->buckets[1];
	prog->tables[0].level = 1; /* fallback: 0 */
	for (unsigned int i = 0; i < FLOWS; i++)
		prog_test_tcp(prog, 10000 + i, ACK);
	assert_int_equal(count_taken(added, table.n_buckets), 0);
	assert_int_equal(prog_put_l2(prog, 0, 1, &table), 0);
	for (unsigned int i = 0; i < FLOWS; i++)
		prog_test_tcp(prog, 20000 + i, ACK);

	assert_int_equal(prog->n_spilled, 0);
	assert_in_range(count_taken(added, table.n_buckets),
			FLOWS - prog_l1_used(prog, 0),
			FLOWS + prog_l1_used(prog, 0));
}

static void watermark_is_announced_once(void **state)
{
	struct prog_options options = { .watermark = 100 };
	struct prog *prog = prog_test_open(&options);

	(void)state;
	assert_int_equal(prog_pin(0), 0);
	send_flows(prog, 100);
	prog_test_flows(prog, 0);
	assert_int_equal(prog->n_watermarks, 0);
	assert_int_equal(prog->tables[0].announced, 0);
	send_flows(prog, FLOWS);
	prog_test_flows(prog, 0);
	assert_int_equal(prog->n_watermarks, 1);
	assert_int_equal(prog->tables[0].announced, 1);
	assert_int_equal(prog->tables[1].announced, 0);
}

static void inserts_are_those_of_the_table(void **state)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	size_t in_l1;

	(void)state;
	assert_int_equal(prog_pin(0), 0);
	send_flows(prog, FLOWS);
	in_l1 = prog_l1_used(prog, 0);
	assert_int_equal(prog->cpus[0].inserts[0], FLOWS - in_l1);
	/* The rough sum is told in steps. */
	assert_in_range(prog->tables[0].inserts, FLOWS - in_l1 - 16,
			FLOWS - in_l1);
	assert_int_equal(prog_test_flows(prog, 0)->n, FLOWS);
}

static void without_a_table_what_leaves_l1_is_lost(void **state)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	size_t in_l1;

	(void)state;
	assert_int_equal(prog_remove_l2(prog, 0), 0);
	send_flows(prog, FLOWS);
	in_l1 = prog_l1_used(prog, 0);
	assert_int_equal(prog_test_flows(prog, 0)->n, in_l1);
	assert_int_equal(lost_of(prog, LOST_NO_MEMORY).packets, FLOWS - in_l1);
}

static void unparsed_is_counted_by_reason(void **state)
{
	static const struct layer frames[UNPARSED_MAX][PACKET_LAYERS] = {
		[UNPARSED_SHORT] = { ETH, VLAN(1), NEXT(0x0800), DATA(19) },
		[UNPARSED_BAD_HEADER] = { ETH, IP4, POKE(0, 0x44), UDP },
		[UNPARSED_TOO_DEEP] = { ETH, VLAN(1), VLAN(2), VLAN(3), VLAN(4),
					DATA(1) },
		[UNPARSED_ARP] = { ETH, ARP },
		[UNPARSED_NOT_IP] = { ETH, NEXT(0x88cc), DATA(46) },
	};
	struct prog *prog = prog_test_open(&(struct prog_options){});
	struct counters counters;

	(void)state;
	for (int reason = 0; reason < UNPARSED_MAX; reason++)
		for (int i = 0; i <= reason; i++)
			prog_test_layers(prog, frames[reason]);
	counters = prog_counters(prog, 0);
	for (int reason = 0; reason < UNPARSED_MAX; reason++)
		assert_int_equal(counters.unparsed[reason].packets, reason + 1);
	assert_int_equal(counters.unparsed[UNPARSED_SHORT].bytes, 19);
	assert_int_equal(counters.unparsed[UNPARSED_NOT_IP].bytes,
			 46 * (UNPARSED_NOT_IP + 1));
	assert_int_equal(prog_test_flows(prog, 0)->n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(full_table_spills_into_the_ring,
					  prog_test_teardown),
		cmocka_unit_test_teardown(full_ring_loses_and_counts,
					  prog_test_teardown),
		cmocka_unit_test_teardown(lost_entry_is_lost_with_all_its_packets,
					  prog_test_teardown),
		cmocka_unit_test_teardown(full_table_still_merges_flows_it_has,
					  prog_test_teardown),
		cmocka_unit_test_teardown(limit_keeps_flows_out_of_the_table,
					  prog_test_teardown),
		cmocka_unit_test_teardown(new_flows_go_to_the_newest_table,
					  prog_test_teardown),
		cmocka_unit_test_teardown(watermark_is_announced_once,
					  prog_test_teardown),
		cmocka_unit_test_teardown(inserts_are_those_of_the_table,
					  prog_test_teardown),
		cmocka_unit_test_teardown(without_a_table_what_leaves_l1_is_lost,
					  prog_test_teardown),
		cmocka_unit_test_teardown(unparsed_is_counted_by_reason,
					  prog_test_teardown),
	};

	return cmocka_run_group_tests_name("overflow", tests, NULL, NULL);
}
