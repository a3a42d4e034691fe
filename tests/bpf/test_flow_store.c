// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Two levels of tables, two generations: no packet is lost between them. */
#include "prog_test.h"

#include <errno.h>
#include <pthread.h>

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 0x10 };
enum { MARK_ECT1 = 1 << (MARK_ECN_SHIFT + 1) }; /* of PACKET_TOS */

static const struct prog_options defaults;

TEST(repeated_flow_stays_in_its_slot)
{
	struct prog *prog = prog_test_open(&defaults);
	struct flow_key key = prog_test_tcp_key(1);
	const struct flow_tally *tally;
	struct flow_tally beside;

	for (int i = 0; i < 100; i++)
		prog_test_tcp(prog, 1, ACK);
	tally = prog_test_tally(prog_test_flows(prog, 0), &key);
	assert_int_equal(tally->packets, 100);
	assert_int_equal(tally->bytes, 100 * PROG_TEST_TCP_BYTES);
	assert_int_equal(tally->l2_bytes, 100 * PROG_TEST_TCP_FRAME);
	assert_int_equal(prog_l1_used(prog, 0), 1);
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), -ENOENT);
}

TEST(flags_are_a_true_or)
{
	struct prog *prog = prog_test_open(&defaults);
	struct flow_key key = prog_test_tcp_key(1);

	prog_test_tcp(prog, 1, SYN);
	prog_test_tcp(prog, 1, ACK | PSH);
	prog_test_tcp(prog, 1, ACK);
	assert_int_equal(
		prog_test_tally(prog_test_flows(prog, 0), &key)->attrs.marks,
		MARK_ECT1 | SYN | ACK | PSH);
}

static void pause_all(struct prog *prog, bool is_paused)
{
	for (uint32_t cpu = 0; cpu < prog->n_cpus; cpu++)
		prog->cpus[cpu].is_paused = is_paused;
}

TEST(paused_programs_count_nothing)
{
	struct prog *prog = prog_test_open(&defaults);
	struct flow_key key = prog_test_tcp_key(1);

	prog_test_tcp(prog, 1, SYN);
	pause_all(prog, true);
	prog_test_tcp(prog, 1, ACK);
	pause_all(prog, false);
	prog_test_tcp(prog, 1, PSH);
	assert_int_equal(
		prog_test_tally(prog_test_flows(prog, 0), &key)->packets, 2);
}

struct combination {
	uint8_t flags[3]; /* of one packet each */
	uint32_t marks;
};

/* The third flow of a set is in the overflow table, the first in L1. */
static void assert_marks_in_both_levels(const struct combination *combination)
{
	struct prog *prog = prog_test_open(&defaults);
	const uint8_t *flags = combination->flags;
	uint16_t ports[] = { 1, prog_test_rival(prog, 0),
			     prog_test_rival(prog, 1) };
	struct flow_key first = prog_test_tcp_key(ports[0]);
	struct flow_key third = prog_test_tcp_key(ports[2]);
	const struct prog_flows *flows;
	struct flow_tally beside;

	prog_test_tcp(prog, ports[0], flags[0]);
	prog_test_tcp(prog, ports[1], ACK);
	for (int i = 0; i < 3; i++)
		prog_test_tcp(prog, ports[2], flags[i]);
	for (int i = 1; i < 3; i++)
		prog_test_tcp(prog, ports[0], flags[i]);
	assert_int_equal(prog_overflow_lookup(prog, 0, &third, &beside), 0);
	assert_int_equal(beside.attrs.marks, MARK_ECT1 | combination->marks);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(prog_test_tally(flows, &first)->attrs.marks,
			 MARK_ECT1 | combination->marks);
}

TEST(flags_of_one_packet_differ_from_those_of_several)
{
	static const struct combination combinations[] = {
		{ { SYN, ACK, FIN }, SYN | ACK | FIN },
		{ { SYN | ACK, ACK, FIN }, SYN | ACK | FIN | MARK_SYN_ACK },
		{ { SYN, ACK, FIN | ACK }, SYN | ACK | FIN | MARK_FIN_ACK },
		{ { SYN, ACK, RST }, SYN | ACK | RST },
		{ { SYN, ACK, RST | ACK }, SYN | ACK | RST | MARK_RST_ACK },
	};

	for (size_t i = 0; i < sizeof(combinations) / sizeof(combinations[0]); i++)
		assert_marks_in_both_levels(&combinations[i]);
}

/* A set has two places; who comes third is added to the table at once. */
TEST(third_flow_of_a_set_goes_to_the_table)
{
	struct prog *prog = prog_test_open(&defaults);
	uint16_t ports[] = { 1, prog_test_rival(prog, 0),
			     prog_test_rival(prog, 1) };
	struct flow_key key = prog_test_tcp_key(ports[2]);
	struct flow_tally beside;

	for (int i = 0; i < 3; i++) {
		prog_test_tcp(prog, ports[i], SYN);
		prog_test_tcp(prog, ports[i], ACK);
	}
	assert_int_equal(prog_l1_used(prog, 0), 2);
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), 0);
	assert_int_equal(beside.packets, 2);
	assert_int_equal(beside.bytes, 2 * PROG_TEST_TCP_BYTES);
	assert_int_equal(beside.attrs.marks, MARK_ECT1 | SYN | ACK);
	key = prog_test_tcp_key(ports[0]);
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), -ENOENT);
	assert_int_equal(prog_test_flows(prog, 0)->n, 3);
}

/* Flows that do not come any more make room, one after the other. */
TEST(busy_flow_takes_the_place_of_an_idle_one)
{
	struct prog *prog = prog_test_open(&defaults);
	uint16_t ports[] = { 1, prog_test_rival(prog, 0),
			     prog_test_rival(prog, 1) };
	struct flow_key idle = prog_test_tcp_key(1);
	struct flow_key busy = prog_test_tcp_key(ports[2]);
	const struct prog_flows *flows;
	struct flow_tally beside;

	prog_test_tcp(prog, ports[0], SYN);
	prog_test_tcp(prog, ports[0], ACK);
	prog_test_tcp(prog, ports[1], ACK);
	for (int i = 0; i < 100; i++)
		prog_test_tcp(prog, ports[2], ACK);
	assert_int_equal(prog_l1_used(prog, 0), 2);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, 3);
	assert_int_equal(prog_test_tally(flows, &busy)->packets, 100);
	assert_int_equal(prog_test_tally(flows, &idle)->packets, 2);
	assert_int_equal(prog_overflow_lookup(prog, 0, &busy, &beside), 0);
	assert_in_range(beside.packets, 1, 50); /* since then it has been in L1 */
	/* The one that had been hit least stayed shortest. */
	idle = prog_test_tcp_key(ports[1]);
	assert_int_equal(prog_overflow_lookup(prog, 0, &idle, &beside), 0);
	assert_int_equal(beside.attrs.marks, MARK_ECT1 | ACK);
}

/* @n flows that all want the same set of L1, 1 the first. */
static void fill_rivals(struct prog *prog, uint16_t *ports, unsigned int n)
{
	ports[0] = 1;
	for (unsigned int i = 1; i < n; i++)
		ports[i] = prog_test_rival(prog, i - 1);
}

TEST(repeated_conflicts_merge)
{
	enum { RIVALS = 6, ROUNDS = 50 };
	static const uint8_t flags[] = { SYN, ACK, PSH | ACK, FIN | ACK, RST };
	struct prog *prog = prog_test_open(&defaults);
	const struct prog_flows *flows;
	uint16_t ports[RIVALS];

	fill_rivals(prog, ports, RIVALS);
	for (int i = 0; i < RIVALS * ROUNDS; i++)
		prog_test_tcp(prog, ports[i % RIVALS],
			      i % RIVALS ? ACK : flags[i / RIVALS % 5]);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, RIVALS);
	for (int i = 0; i < RIVALS; i++) {
		struct flow_key key = prog_test_tcp_key(ports[i]);
		const struct flow_tally *tally = prog_test_tally(flows, &key);

		assert_int_equal(tally->packets, ROUNDS);
		assert_int_equal(tally->bytes, ROUNDS * PROG_TEST_TCP_BYTES);
		assert_int_equal(tally->l2_bytes, ROUNDS * PROG_TEST_TCP_FRAME);
		assert_int_equal(
			tally->attrs.marks,
			MARK_ECT1 | ACK |
				(i ? 0 : SYN | PSH | FIN | RST | MARK_FIN_ACK));
	}
}

TEST(merging_keeps_first_last_and_extremes)
{
	static const uint8_t ttls[] = { 60, 50, 70 };
	struct prog_options options = { .clock = CLOCK_PACKET };
	struct prog *prog = prog_test_open(&options);
	struct flow_key key = prog_test_tcp_key(1);
	struct flow_tally beside;

	prog_test_tcp(prog, prog_test_rival(prog, 0), ACK);
	prog_test_tcp(prog, prog_test_rival(prog, 1), ACK);
	for (unsigned int i = 0; i < 3; i++) {
		const struct layer layers[] = {
			ETH,	    IP4, POKE(8, ttls[i]), TCP(ACK), POKE(0, 0),
			POKE(1, 1), {}
		};
		struct packet_bytes bytes;
		struct prog_packet packet = { .bytes = bytes.bytes,
					      .time_ns = 1000 * (i + 1) };

		packet_build(layers, &bytes);
		packet.len = bytes.len;
		assert_int_equal(prog_run(prog, &packet, NULL), 0);
	}
	assert_int_equal(prog_overflow_lookup(prog, 0, &key, &beside), 0);
	assert_int_equal(beside.packets, 3);
	assert_int_equal(beside.first_ns, 1000);
	assert_int_equal(beside.last_ns, 3000);
	assert_int_equal(beside.attrs.ttl_min, 50);
	assert_int_equal(beside.attrs.ttl_max, 70);
}

/* In L1, and in the overflow table after L1. */
TEST(the_first_flow_label_is_kept)
{
	enum { FLOWS = 100, ROUNDS = 3 };
	struct prog_options options = { .clock = CLOCK_PACKET };
	struct prog *prog = prog_test_open(&options);
	const struct prog_flows *flows;

	for (uint32_t i = 0; i < ROUNDS * FLOWS; i++) {
		uint32_t round = i / FLOWS, port = 1 + i % FLOWS;
		const struct layer layers[] = {
			ETH,	  IP6,	      POKE(2, round), POKE(3, port),
			TCP(ACK), POKE(0, 0), POKE(1, port),  {}
		};
		struct packet_bytes bytes;
		struct prog_packet packet = { .bytes = bytes.bytes,
					      .time_ns = 1000 + round };

		packet_build(layers, &bytes);
		packet.len = bytes.len;
		assert_int_equal(prog_run(prog, &packet, NULL), 0);
	}
	assert_in_range(prog_l1_used(prog, 0), 1, FLOWS / 2);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, FLOWS);
	for (uint32_t i = 0; i < FLOWS; i++) {
		const struct flow_entry *entry = &flows->entries[i];

		assert_int_equal(entry->tally.packets, ROUNDS);
		assert_int_equal(entry->tally.attrs.flow_label,
				 (PACKET_LABEL & 0xf0000) + entry->key.src_port);
	}
}

TEST(many_flows_are_all_exact)
{
	enum { FLOWS = 1000, ROUNDS = 3 };
	struct prog *prog = prog_test_open(&defaults);
	const struct prog_flows *flows;

	for (int round = 0; round < ROUNDS; round++)
		for (int port = 1; port <= FLOWS; port++)
			prog_test_tcp(prog, port, ACK);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, FLOWS);
	for (int port = 1; port <= FLOWS; port++) {
		struct flow_key key = prog_test_tcp_key(port);

		assert_int_equal(prog_test_tally(flows, &key)->packets, ROUNDS);
	}
}

TEST(a_program_writes_to_its_generation_only)
{
	struct prog *prog = prog_test_open(&defaults);
	struct flow_key key = prog_test_tcp_key(1), third;
	uint16_t port = prog_test_rival(prog, 1);
	const struct prog_flows *flows;
	struct flow_tally beside;

	third = prog_test_tcp_key(port);
	prog_test_tcp(prog, 1, SYN);
	prog_set_generation(prog, 1);
	prog_test_tcp(prog, 1, ACK);
	prog_test_tcp(prog, 1, ACK);
	prog_test_tcp(prog, prog_test_rival(prog, 0), ACK);
	prog_test_tcp(prog, port, ACK);

	assert_int_equal(prog_overflow_lookup(prog, 0, &third, &beside), -ENOENT);
	assert_int_equal(prog_overflow_lookup(prog, 1, &third, &beside), 0);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, 1);
	assert_int_equal(prog_test_tally(flows, &key)->packets, 1);
	assert_int_equal(prog_test_tally(flows, &key)->attrs.marks,
			 MARK_ECT1 | SYN);
	flows = prog_test_flows(prog, 1);
	assert_int_equal(flows->n, 3);
	assert_int_equal(prog_test_tally(flows, &key)->packets, 2);
	assert_int_equal(prog_test_tally(flows, &key)->attrs.marks,
			 MARK_ECT1 | ACK);
}

TEST(directions_and_namespaces_are_apart)
{
	struct prog_options options = { .netns = 7, .has_egress = true };
	struct prog *prog = prog_test_open(&options);
	static const struct layer layers[] = { ETH, IP4, UDP, {} };
	struct packet_bytes bytes;
	struct prog_packet packet = { .bytes = bytes.bytes };
	const struct prog_flows *flows;

	packet_build(layers, &bytes);
	packet.len = bytes.len;
	for (int i = 0; i < 2; i++) {
		packet.egress = i;
		assert_int_equal(prog_run(prog, &packet, NULL), 0);
	}
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, 2);
	assert_int_equal(flows->entries[0].key.netns, 7);
	assert_int_equal(flows->entries[1].key.netns, 7);
	assert_int_equal(flows->entries[0].key.flags ^ flows->entries[1].key.flags,
			 KEY_EGRESS);
}

TEST(every_run_that_enters_exits)
{
	static const struct layer arp[] = { ETH, ARP, {} };
	struct prog *prog = prog_test_open(&defaults);
	uint64_t entered = 0;

	prog_test_tcp(prog, 1, ACK);
	prog_test_layers(prog, arp);
	prog_test_tcp(prog, prog_test_rival(prog, 0), ACK);
	for (uint32_t cpu = 0; cpu < prog->n_cpus; cpu++) {
		entered += prog->cpus[cpu].entered;
		assert_int_equal(prog->cpus[cpu].entered, prog->cpus[cpu].exited);
	}
	assert_int_equal(entered, 3);
}

enum { SENDER_FLOWS = 5, SENDER_ROUNDS = 2000, SENDER_REPEAT = 3 };

struct sender {
	struct prog *prog;
	unsigned int cpu;
	const uint16_t *ports;
	int err;
};

/* Flows that drive each other out of the set. */
static void *send_rivals(void *arg)
{
	struct sender *sender = arg;
	struct packet_bytes bytes[SENDER_FLOWS];

	for (int i = 0; i < SENDER_FLOWS; i++) {
		const struct layer layers[] = { ETH,
						IP4,
						TCP(i ? FIN : SYN),
						POKE(0, sender->ports[i] >> 8),
						POKE(1, sender->ports[i] & 0xff),
						{} };

		packet_build(layers, &bytes[i]);
	}
	sender->err = prog_pin(sender->cpu);
	for (int i = 0; i < SENDER_FLOWS * SENDER_ROUNDS && !sender->err; i++) {
		const struct packet_bytes *next = &bytes[i % SENDER_FLOWS];
		struct prog_packet packet = { .bytes = next->bytes,
					      .len = next->len,
					      .repeat = SENDER_REPEAT };

		sender->err = prog_run(sender->prog, &packet, NULL);
	}
	return NULL;
}

/* On a machine with one CPU the second sender takes turns with the first. */
TEST(two_cpus_at_once_are_exact)
{
	struct prog *prog = prog_test_open(&defaults);
	uint16_t ports[SENDER_FLOWS];
	struct sender senders[2];
	pthread_t threads[2];
	const struct prog_flows *flows;

	fill_rivals(prog, ports, SENDER_FLOWS);
	for (unsigned int i = 0; i < 2; i++) {
		senders[i] = (struct sender){ prog, i % prog->n_cpus, ports, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, send_rivals,
						&senders[i]),
				 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(senders[0].err, 0);
	assert_int_equal(senders[1].err, 0);

	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, SENDER_FLOWS);
	for (int i = 0; i < SENDER_FLOWS; i++) {
		struct flow_key key = prog_test_tcp_key(ports[i]);
		const struct flow_tally *tally = prog_test_tally(flows, &key);

		assert_int_equal(tally->packets,
				 2 * SENDER_ROUNDS * SENDER_REPEAT);
		assert_int_equal(tally->attrs.marks, MARK_ECT1 | (i ? FIN : SYN));
	}
}

int main(void)
{
	return tests_run(NULL, prog_test_teardown);
}
