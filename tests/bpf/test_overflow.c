// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* More flows than the table takes: to the ring buffer, then counted as lost. */
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
	struct prog_options options = { .l2_entries = 10 };
	struct prog *prog = prog_test_open(&options);
	const struct prog_flows *flows;

	(void)state;
	send_flows(prog, FLOWS);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, FLOWS);
	assert_in_range(prog->n_spilled, 1, FLOWS);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets, 0);
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow_key key = prog_test_tcp_key(1 + i);

		assert_int_equal(prog_test_tally(flows, &key)->packets, 1);
	}
}

static void full_ring_loses_and_counts(void **state)
{
	struct prog_options options = { .l2_entries = 10 };
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

/* A flow that is lost takes all its packets with it, not the last one only. */
static void lost_flow_is_lost_with_all_its_packets(void **state)
{
	struct prog_options options = { .l2_entries = 1 };
	struct prog *prog;
	struct count before, after;

	(void)state;
	options.ring_bytes = sysconf(_SC_PAGESIZE);
	prog = prog_test_open(&options);
	/* The first rival gets the place in the table, others fill the ring. */
	prog_test_tcp(prog, prog_test_rival(prog, 0), ACK);
	prog_test_tcp(prog, prog_test_rival(prog, 1), ACK);
	send_flows(prog, FLOWS);
	for (int i = 0; i < 5; i++)
		prog_test_tcp(prog, 1, ACK);
	before = lost_of(prog, LOST_TABLE_FULL);
	prog_test_tcp(prog, prog_test_rival(prog, 1), ACK);
	after = lost_of(prog, LOST_TABLE_FULL);
	assert_int_equal(after.packets - before.packets, 5);
	assert_int_equal(after.bytes - before.bytes, 5 * PROG_TEST_TCP_BYTES);
	prog_test_flows(prog, 0);
}

static void full_table_still_merges_flows_it_has(void **state)
{
	struct prog_options options = { .l2_entries = 10 };
	struct prog *prog = prog_test_open(&options);
	struct flow_key key = prog_test_tcp_key(1);
	uint16_t port = prog_test_rival(prog, 0);
	struct flow_tally l2;

	(void)state;
	prog_test_tcp(prog, 1, ACK);
	prog_test_tcp(prog, port, ACK);
	send_flows(prog, FLOWS);
	for (int i = 0; i < 10; i++) {
		prog_test_tcp(prog, 1, ACK);
		prog_test_tcp(prog, port, ACK);
	}
	assert_int_equal(prog_l2_lookup(prog, 0, &key, &l2), 0);
	assert_int_equal(l2.packets, 12);
	prog_test_flows(prog, 0);
}

static void watermark_is_announced_once(void **state)
{
	struct prog_options options = { .watermark = 100 };
	struct prog *prog = prog_test_open(&options);

	(void)state;
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
	send_flows(prog, FLOWS);
	in_l1 = prog_l1_used(prog, 0);
	assert_int_equal(prog->tables[0].inserts, FLOWS - in_l1);
	assert_int_equal(prog_test_flows(prog, 0)->n, FLOWS);
}

static void without_a_table_flows_go_to_the_ring(void **state)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});

	(void)state;
	assert_int_equal(prog_remove_l2(prog, 0), 0);
	send_flows(prog, FLOWS);
	assert_int_equal(prog_test_flows(prog, 0)->n, FLOWS);
	assert_int_equal(prog->n_spilled, FLOWS - prog_l1_used(prog, 0));
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
		cmocka_unit_test_teardown(lost_flow_is_lost_with_all_its_packets,
					  prog_test_teardown),
		cmocka_unit_test_teardown(full_table_still_merges_flows_it_has,
					  prog_test_teardown),
		cmocka_unit_test_teardown(watermark_is_announced_once,
					  prog_test_teardown),
		cmocka_unit_test_teardown(inserts_are_those_of_the_table,
					  prog_test_teardown),
		cmocka_unit_test_teardown(without_a_table_flows_go_to_the_ring,
					  prog_test_teardown),
		cmocka_unit_test_teardown(unparsed_is_counted_by_reason,
					  prog_test_teardown),
	};

	return cmocka_run_group_tests_name("overflow", tests, NULL, NULL);
}
