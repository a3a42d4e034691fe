// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What finds the log full: to the overflow table, then counted as lost. */
#include "prog_test.h"

#include "base/util.h"
#include "engine/map.h"
#include "engine/overflow.h"
#include "lib_lab.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
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

/* Of another CPU, an entry takes a place of its own. */
static void what_leaves_l1_overflows_where_there_is_no_log(void **state)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	const struct prog_flows *flows;
	size_t beside;

	(void)state;
	assert_int_equal(prog_pin(0), 0);
	send_flows(prog, FLOWS);
	beside = prog_overflow_used(prog, 0);
	assert_int_equal(beside, FLOWS - prog_l1_used(prog, 0));
	assert_int_equal(prog_counters(prog, 0).spilled.packets, beside);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets, 0);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, FLOWS);
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow_key key = prog_test_tcp_key(1 + i);

		assert_int_equal(prog_test_tally(flows, &key)->packets, 1);
	}
}

static void full_table_loses_and_counts(void **state)
{
	struct prog_options options = { .overflow_room = 16 };
	struct prog *prog = prog_test_open(&options);
	struct count lost;

	(void)state;
	send_flows(prog, FLOWS);
	lost = lost_of(prog, LOST_TABLE_FULL);
	assert_int_equal(lost.packets, FLOWS - 16 - prog_l1_used(prog, 0));
	assert_int_equal(lost.bytes, lost.packets * PROG_TEST_TCP_BYTES);
	assert_int_equal(lost_of(prog, LOST_NO_MEMORY).packets, 0);
	assert_int_equal(prog_test_flows(prog, 0)->n, FLOWS - lost.packets);
}

/* An entry of L1 that is lost takes all its packets with it, not the last one. */
static void lost_entry_is_lost_with_all_its_packets(void **state)
{
	struct prog_options options = { .overflow_room = 16 };
	struct prog *prog = prog_test_open(&options);
	struct count before, after;
	unsigned int rival = 0;

	(void)state;
	send_flows(prog, FLOWS); /* fills the table */
	while (prog_test_rival(prog, rival) <= FLOWS)
		rival++;
	for (int i = 0; i < 40; i++) /* it earns its place */
		prog_test_tcp(prog, prog_test_rival(prog, rival), ACK);
	do { /* newcomers, until it is its turn */
		before = lost_of(prog, LOST_TABLE_FULL);
		prog_test_tcp(prog, prog_test_rival(prog, ++rival), ACK);
		after = lost_of(prog, LOST_TABLE_FULL);
		assert_in_range(rival, 0, 500);
	} while (after.packets - before.packets == 1);
	assert_int_equal(after.bytes - before.bytes,
			 (after.packets - before.packets) * PROG_TEST_TCP_BYTES);
	prog_test_flows(prog, 0);
}

static void full_table_still_merges_flows_it_has(void **state)
{
	enum { ROUNDS = 10 };
	struct prog_options options = { .overflow_room = 1 };
	struct prog *prog = prog_test_open(&options);
	struct flow_key key = prog_test_tcp_key(prog_test_rival(prog, 1));
	uint16_t ports[3] = { 1, prog_test_rival(prog, 0),
			      prog_test_rival(prog, 1) };
	struct flow_tally beside;

	(void)state;
	assert_int_equal(prog_pin(0), 0);
	for (int i = 0; i < 3; i++)
		prog_test_tcp(prog, ports[i], ACK);
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), 0);
	for (int i = 1; i < ROUNDS; i++)
		prog_test_tcp(prog, ports[2], ACK);
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), 0);
	assert_int_equal(beside.packets, ROUNDS);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets, 0);
}

static void without_a_table_what_leaves_l1_is_lost(void **state)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	size_t in_l1;

	(void)state;
	assert_int_equal(prog_remove_overflow(prog, 0), 0);
	send_flows(prog, FLOWS);
	in_l1 = prog_l1_used(prog, 0);
	assert_int_equal(prog_test_flows(prog, 0)->n, in_l1);
	assert_int_equal(lost_of(prog, LOST_NO_MEMORY).packets, FLOWS - in_l1);
}

/* ---- The tables of user space --------------------------------------------------- */

struct sum {
	uint64_t n;
	uint64_t packets;
};

static void add_to_sum(void *ctx, const struct flow_entry *entry)
{
	struct sum *sum = ctx;

	sum->n++;
	sum->packets += entry->tally.packets;
}

static struct sum take_all(struct overflow *overflow, uint32_t generation)
{
	struct sum sum = { 0 };
	int ret;

	while ((ret = overflow_take(overflow, generation, add_to_sum, &sum)))
		if (ret == -EAGAIN)
			usleep(1000);
		else
			assert_int_equal(ret, 1);
	return sum;
}

/* The table that the programs find now. */
static int current_table(int outer_fd, uint32_t generation)
{
	uint32_t id = 0;

	assert_int_equal(bpf_map_lookup_elem(outer_fd, &generation, &id), 0);
	return bpf_map_get_fd_by_id(id);
}

/* As programs on two CPUs leave @n flows of @packets each, from @first on. */
static void put_flows(int outer_fd, uint32_t generation, uint32_t first,
		      uint32_t n, uint64_t packets)
{
	cleanup_fd int fd = current_table(outer_fd, generation);
	const struct overflow_value value = { .tally.packets = packets };

	for (uint32_t i = first; i < first + n; i++) {
		struct overflow_key key = { .flow.ifindex = 1, .cpu = i % 2 };

		key.flow.src.words[0] = i;
		assert_int_equal(
			bpf_map_update_elem(fd, &key, &value, BPF_NOEXIST), 0);
	}
}

static void entries_of_one_generation_are_taken_once(void **state)
{
	struct overflow overflow;
	cleanup_fd int like = map_make_overflow(1);
	cleanup_fd int outer = map_make_outer(like, GENERATIONS);
	struct sum sum;

	(void)state;
	assert_int_equal(overflow_init(&overflow, outer, 1 << 20, 0), 0);
	put_flows(outer, 0, 0, 10000, 3);
	put_flows(outer, 1, 0, 700, 5);
	sum = take_all(&overflow, 0);
	assert_int_equal(sum.n, 10000);
	assert_int_equal(sum.packets, 30000);
	assert_int_equal(take_all(&overflow, 0).n, 0);
	assert_int_equal(take_all(&overflow, 1).packets, 3500);
	overflow_done(&overflow);
}

static uint32_t room_of(int fd)
{
	struct bpf_map_info info;
	uint32_t size = sizeof(info);

	memset(&info, 0, sizeof(info));
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	return info.max_entries;
}

static uint32_t current_room(int outer_fd, uint32_t generation)
{
	cleanup_fd int fd = current_table(outer_fd, generation);

	return room_of(fd);
}

/* Programs may fill the old table until the kernel has put the new one in place. */
static void replaced_table_is_read_as_well(void **state)
{
	struct overflow overflow;
	cleanup_fd int like = map_make_overflow(1);
	cleanup_fd int outer = map_make_outer(like, GENERATIONS);
	int before = lab_count_fds();
	uint64_t idle;

	(void)state;
	assert_int_equal(overflow_init(&overflow, outer, 1 << 20, 0), 0);
	idle = overflow_bytes(&overflow);
	put_flows(outer, 0, 0, 1000, 1);
	overflow_expect(&overflow, 0, 200000);
	for (uint32_t i = 0; current_room(outer, 0) < 200000; i++) {
		assert_in_range(i, 0, 20000);
		usleep(1000);
	}
	put_flows(outer, 0, 5000, 500, 1);
	assert_int_equal(take_all(&overflow, 0).n, 1500);
	assert_true(overflow_bytes(&overflow) > 2 * idle);

	/* After quiet intervals they are as small as at first. */
	for (uint32_t i = 0; overflow_bytes(&overflow) > idle; i++) {
		assert_in_range(i, 0, 500);
		overflow_fit(&overflow, i % 2, 10);
		take_all(&overflow, i % 2);
	}
	overflow_done(&overflow);
	assert_int_equal(lab_count_fds(), before);
}

/* Full ones would take no more than the limit. */
static void tables_keep_to_a_limit_of_memory(void **state)
{
	enum { LIMIT = 8 << 20, BYTES = 208 };
	struct overflow overflow;
	cleanup_fd int like = map_make_overflow(1);
	cleanup_fd int outer = map_make_outer(like, GENERATIONS);

	(void)state;
	assert_int_equal(overflow_init(&overflow, outer, 1 << 20, LIMIT), 0);
	for (uint32_t g = 0; g < GENERATIONS; g++) {
		overflow_expect(&overflow, g, 1 << 20);
		overflow_fit(&overflow, g, 1 << 20);
		assert_null(overflow.tables[g].replacing);
		assert_in_range(current_room(outer, g), 1024,
				LIMIT / GENERATIONS / BYTES);
	}
	overflow_done(&overflow);
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
		cmocka_unit_test_teardown(
			what_leaves_l1_overflows_where_there_is_no_log,
			prog_test_teardown),
		cmocka_unit_test_teardown(full_table_loses_and_counts,
					  prog_test_teardown),
		cmocka_unit_test_teardown(lost_entry_is_lost_with_all_its_packets,
					  prog_test_teardown),
		cmocka_unit_test_teardown(full_table_still_merges_flows_it_has,
					  prog_test_teardown),
		cmocka_unit_test_teardown(without_a_table_what_leaves_l1_is_lost,
					  prog_test_teardown),
		cmocka_unit_test(entries_of_one_generation_are_taken_once),
		cmocka_unit_test(replaced_table_is_read_as_well),
		cmocka_unit_test(tables_keep_to_a_limit_of_memory),
		cmocka_unit_test_teardown(unparsed_is_counted_by_reason,
					  prog_test_teardown),
	};

	return cmocka_run_group_tests_name("overflow", tests, NULL, NULL);
}
