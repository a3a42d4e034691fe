// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What misses L1 goes to the CPU's log; while that is full, it overflows. */
#include "prog_test.h"

#include "bpf/store/log.h"

#include <string.h>

enum { ACK = 0x10, SYN = 0x02, FLOWS = 500, ROUNDS = 20, SLOTS = 16384 };

/* Some kinds of packets, and flows that displace one another in L1. */
static void send_all(struct prog *prog)
{
	static const struct layer kinds[][PACKET_LAYERS] = {
		{ ETH, IP4, UDP },
		{ ETH, IP6, TCP(SYN) },
		{ ETH, VLAN(7), IP4, ICMP(8, 0) },
		{ ETH, VLAN(7), VLAN(8), IP6, UDP },
	};

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			prog_test_layers(prog, kinds[i]);
		for (uint32_t i = 0; i < FLOWS; i++)
			prog_test_tcp(prog, 1 + i, round ? ACK : SYN);
	}
}

static struct prog *open_with_log(__u32 slots)
{
	const struct prog_options options = { .log_slots = slots };
	struct prog *prog = prog_test_open(&options);

	assert_int_equal(prog_pin(0), 0);
	return prog;
}

static __u64 head_of(const struct prog *prog)
{
	__u64 head = 0;

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		head += prog->cpus[cpu].log_head;
	return head;
}

/* Except times, which differ between two runs. */
static void assert_alike(struct flow_tally a, struct flow_tally b)
{
	a.first_ns = a.last_ns = b.first_ns = b.last_ns = 0;
	assert_memory_equal(&a, &b, sizeof(a));
}

TEST(log_has_what_would_overflow)
{
	static struct prog_flows overflowed;
	struct prog *prog = prog_test_open(&(struct prog_options){});
	const struct prog_flows *flows;

	send_all(prog);
	overflowed = *prog_test_flows(prog, 0);
	prog = open_with_log(SLOTS);
	send_all(prog);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, overflowed.n);
	for (size_t i = 0; i < flows->n; i++)
		assert_alike(flows->entries[i].tally,
			     *prog_test_tally(&overflowed,
					      &flows->entries[i].key));
	assert_true(head_of(prog) > FLOWS);
	assert_int_equal(prog_overflow_used(prog, 0), 0);
}

TEST(full_log_leaves_the_rest_to_overflow)
{
	struct prog *prog = open_with_log(64);
	const struct prog_flows *flows;

	send_all(prog);
	assert_in_range(head_of(prog), 63, 64);
	assert_true(prog_overflow_used(prog, 0) > 0);
	flows = prog_test_flows(prog, 0);
	for (__u32 i = 0; i < FLOWS; i++) {
		struct flow_key key = prog_test_tcp_key(1 + i);

		assert_int_equal(prog_test_tally(flows, &key)->packets, ROUNDS);
	}
}

/* The reader left room, which the program learns only when it needs it. */
TEST(log_is_used_again_once_it_was_read)
{
	struct prog *prog = open_with_log(64);
	__u64 head;

	send_all(prog);
	prog_test_flows(prog, 0);
	head = head_of(prog);
	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		prog->cpus[cpu].log_tail = prog->cpus[cpu].log_head;
	send_all(prog);
	assert_in_range(head_of(prog) - head, 63, 64);
}

TEST(records_carry_their_generation)
{
	struct prog *prog = open_with_log(SLOTS);

	send_all(prog);
	prog_set_generation(prog, 1);
	send_all(prog);
	for (__u32 generation = 0; generation < GENERATIONS; generation++) {
		const struct prog_flows *flows =
			prog_test_flows(prog, generation);
		struct flow_key key = prog_test_tcp_key(1);

		assert_int_equal(prog_test_tally(flows, &key)->packets, ROUNDS);
	}
}

TEST(reader_is_woken_at_each_quarter)
{
	struct prog *prog = open_with_log(64);

	send_all(prog);
	prog_test_flows(prog, 0);
	assert_in_range(prog->n_notices, 3, LOG_WAKE_SHARE);
}

int main(void)
{
	return tests_run(NULL, prog_test_teardown);
}
