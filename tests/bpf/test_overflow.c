// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What finds the log full: to the overflow table, then counted as lost. */
#include "prog_test.h"

#include "engine/map.h"
#include "engine/store.h"
#include "lib_lab.h"

#include <bpf/bpf.h>

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
TEST(what_leaves_l1_overflows_where_there_is_no_log)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	const struct prog_flows *flows;
	size_t beside;

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

/* A page has room for fifteen flows; there are no more pages. */
TEST(full_table_loses_and_counts)
{
	struct prog_options options = { .overflow_room = 1 };
	struct prog *prog = prog_test_open(&options);
	struct count lost;

	assert_int_equal(prog_pin(0), 0);
	send_flows(prog, FLOWS);
	assert_int_equal(prog_overflow_used(prog, 0), OVERFLOW_FLOWS);
	lost = lost_of(prog, LOST_TABLE_FULL);
	assert_int_equal(lost.packets,
			 FLOWS - OVERFLOW_FLOWS - prog_l1_used(prog, 0));
	assert_int_equal(lost.bytes, lost.packets * PROG_TEST_TCP_BYTES);
	assert_int_equal(lost_of(prog, LOST_NO_MEMORY).packets, 0);
	assert_int_equal(prog_test_flows(prog, 0)->n, FLOWS - lost.packets);
}

/* All levels of one CPU, until none of them has room for a flow. */
TEST(each_level_fills_before_flows_are_lost)
{
	enum { MANY = 3000, PAGES = OVERFLOW_PARTS };
	struct prog_options options = { .overflow_room = PAGES };
	struct prog *prog = prog_test_open(&options);
	size_t used;

	assert_int_equal(prog_pin(0), 0);
	send_flows(prog, MANY);
	used = prog_overflow_used(prog, 0);
	assert_in_range(used, PAGES * OVERFLOW_FLOWS * 8 / 10,
			PAGES * OVERFLOW_FLOWS);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets,
			 MANY - used - prog_l1_used(prog, 0));
	assert_int_equal(prog_counters(prog, 0).spilled.packets, used);
	assert_int_equal(prog_test_flows(prog, 0)->n,
			 used + prog_l1_used(prog, 0));
}

/* An entry of L1 that is lost takes all its packets with it, not the last one. */
TEST(lost_entry_is_lost_with_all_its_packets)
{
	struct prog_options options = { .overflow_room = 1 };
	struct prog *prog = prog_test_open(&options);
	struct count before, after;
	unsigned int rival = 0;

	assert_int_equal(prog_pin(0), 0);
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

/* Two flows keep L1's bucket; their rivals fill the only page, and one has no room. */
TEST(full_table_still_merges_flows_it_has)
{
	enum { ROUNDS = 10, RIVALS = OVERFLOW_FLOWS + 1 };
	struct prog_options options = { .overflow_room = 1 };
	struct prog *prog = prog_test_open(&options);
	const uint16_t first = prog_test_rival(prog, 1);
	const struct flow_key key = prog_test_tcp_key(first);
	struct flow_tally beside;

	assert_int_equal(prog_pin(0), 0);
	for (int i = 0; i < 2; i++) { /* the second time they earn their places */
		prog_test_tcp(prog, 1, ACK);
		prog_test_tcp(prog, prog_test_rival(prog, 0), ACK);
	}
	for (int i = 1; i <= RIVALS; i++)
		prog_test_tcp(prog, prog_test_rival(prog, i), ACK);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets, 1);
	for (int i = 1; i < ROUNDS; i++)
		prog_test_tcp(prog, first, ACK);
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), 0);
	assert_int_equal(beside.packets, ROUNDS);
	assert_int_equal(lost_of(prog, LOST_TABLE_FULL).packets, 1);
}

TEST(without_a_table_what_leaves_l1_is_lost)
{
	struct prog *prog = prog_test_open(&(struct prog_options){});
	size_t in_l1;

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

/* As programs on two CPUs leave @n flows of @packets each, so many in a page. */
static void put_flows(int outer_fd, uint32_t generation, uint32_t n,
		      uint32_t per_page, uint64_t packets)
{
	cleanup_fd int fd = current_table(outer_fd, generation);

	for (uint32_t i = 0; i < n; i += per_page) {
		struct overflow_key key = { .cpu = i % 2, .page = i };
		struct overflow_page page = { .n = per_page };

		for (uint32_t k = 0; k < per_page; k++)
			page.entries[k].tally.packets = packets;
		assert_int_equal(
			bpf_map_update_elem(fd, &key, &page, BPF_NOEXIST), 0);
	}
}

TEST(entries_of_one_generation_are_taken_once)
{
	struct overflow overflow;
	cleanup_fd int like = map_make_overflow(1);
	cleanup_fd int outer = map_make_outer(like, GENERATIONS);
	struct sum sum;

	assert_int_equal(overflow_init(&overflow, outer, 1 << 20, 0), 0);
	put_flows(outer, 0, 10000, 10, 3);
	put_flows(outer, 1, 700, 1, 5);
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

/* Full ones would take no more than the limit. */
TEST(tables_keep_to_a_limit_of_memory)
{
	enum { LIMIT = 8 << 20, BYTES = 2064 };
	struct overflow overflow;
	cleanup_fd int like = map_make_overflow(1);
	cleanup_fd int outer = map_make_outer(like, GENERATIONS);

	assert_int_equal(overflow_init(&overflow, outer, 1 << 20, LIMIT), 0);
	for (uint32_t g = 0; g < GENERATIONS; g++)
		assert_in_range(current_room(outer, g), 1024,
				LIMIT / GENERATIONS / BYTES);
	overflow_done(&overflow);
}

TEST(unparsed_is_counted_by_reason)
{
	enum { REASONS = UNPARSED_PPP + 1 }; /* others are of files */
	static const struct layer frames[REASONS][PACKET_LAYERS] = {
		[UNPARSED_SHORT] = { ETH, VLAN(1), NEXT(0x0800), DATA(19) },
		[UNPARSED_BAD_HEADER] = { ETH, IP4, POKE(0, 0x44), UDP },
		[UNPARSED_TOO_DEEP] = { ETH, VLAN(1), VLAN(2), VLAN(3), VLAN(4),
					DATA(1) },
		[UNPARSED_ARP] = { ETH, ARP },
		[UNPARSED_NOT_IP] = { ETH, NEXT(0x88cc), DATA(46) },
		[UNPARSED_PPP] = { ETH, NEXT(0x8863), DATA(46) },
	};
	struct prog *prog = prog_test_open(&(struct prog_options){});
	struct counters counters;

	for (int reason = 0; reason < REASONS; reason++)
		for (int i = 0; i <= reason; i++)
			prog_test_layers(prog, frames[reason]);
	counters = prog_counters(prog, 0);
	for (int reason = 0; reason < REASONS; reason++)
		assert_int_equal(counters.unparsed[reason].packets, reason + 1);
	assert_int_equal(counters.unparsed[UNPARSED_SHORT].bytes, 19);
	assert_int_equal(counters.unparsed[UNPARSED_NOT_IP].bytes,
			 46 * (UNPARSED_NOT_IP + 1));
	assert_int_equal(prog_test_flows(prog, 0)->n, 0);
}
