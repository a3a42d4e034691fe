// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* L1, logs and overflow tables, two generations: no packet is lost between them. */
#include "prog_test.h"

#include "bpf/store/log.h"
#include "host.h"
#include "lib_seed.h"

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

/* ---- A model ------------------------------------------------------------------- */

enum { MODEL_FLOWS = 60, MODEL_PACKETS = 4096, LITTLE_LOG = 64, NETNS = 7 };

/* The sums of a flow's packets, in one generation and one direction. */
struct truth {
	struct flow_key key;
	struct flow_tally tally;
};

static struct truth truths[GENERATIONS][2 * MODEL_FLOWS];

/* Of one packet. */
struct values {
	bool is_ipv6;
	uint8_t flags, ttl;
	uint16_t label; /* the low bits */
	uint64_t ns;
};

static void note(struct truth *truth, const struct values *values, size_t len)
{
	static const uint32_t combined[] = {
		[FIN] = MARK_FIN_ACK, [SYN] = MARK_SYN_ACK, [RST] = MARK_RST_ACK
	};
	struct flow_tally *tally = &truth->tally;

	if (!tally->packets) {
		tally->first_ns = values->ns;
		tally->attrs.ttl_min = tally->attrs.ttl_max = values->ttl;
		tally->attrs.flow_label =
			values->is_ipv6 ?
				(PACKET_LABEL & 0xf0000) + values->label :
				0;
	}
	tally->packets++;
	tally->bytes += len - 14;
	tally->l2_bytes += len;
	tally->last_ns = values->ns;
	if (values->ttl < tally->attrs.ttl_min)
		tally->attrs.ttl_min = values->ttl;
	if (values->ttl > tally->attrs.ttl_max)
		tally->attrs.ttl_max = values->ttl;
	tally->attrs.marks |= MARK_ECT1 | values->flags;
	if (values->flags & ACK)
		tally->attrs.marks |= combined[values->flags & (FIN | SYN | RST)];
}

/* Packets of one flow are alike but for these. */
static void send_random(struct prog *prog, struct truth *generation, uint64_t ns)
{
	static const uint8_t flags[] = { SYN, SYN | ACK, ACK, PSH | ACK,
					 FIN, FIN | ACK, RST, RST | ACK };
	const long flow = test_below(MODEL_FLOWS);
	const struct values values = { .is_ipv6 = flow % 2,
				       .flags = flags[test_below(8)],
				       .ttl = 40 + test_below(50),
				       .label = (uint16_t)test_random(),
				       .ns = ns };
	const struct layer ip4[] = { ETH,
				     IP4,
				     POKE(8, values.ttl),
				     TCP(values.flags),
				     POKE(0, 0),
				     POKE(1, 1 + flow),
				     {} };
	const struct layer ip6[] = { ETH,
				     IP6,
				     POKE(7, values.ttl),
				     POKE(2, values.label >> 8),
				     POKE(3, values.label & 0xff),
				     TCP(values.flags),
				     POKE(0, 0),
				     POKE(1, 1 + flow),
				     {} };
	struct packet_bytes bytes;
	struct prog_packet packet = { .bytes = bytes.bytes,
				      .time_ns = ns,
				      .egress = test_below(2) };
	struct truth *truth = &generation[2 * flow + packet.egress];

	packet_build(values.is_ipv6 ? ip6 : ip4, &bytes);
	packet.len = bytes.len;
	assert_int_equal(prog_run(prog, &packet, NULL), 0);
	truth->key = host_parse(LINK_ETHERNET, bytes.bytes, bytes.len).pkt.key;
	truth->key.ifindex = 1;
	truth->key.netns = NETNS;
	truth->key.flags |= packet.egress ? KEY_EGRESS : 0;
	note(truth, &values, bytes.len);
}

static void compare(struct prog *prog, uint32_t generation)
{
	const struct prog_flows *flows = prog_test_flows(prog, generation);

	assert_int_equal(flows->n, 2 * MODEL_FLOWS);
	for (int i = 0; i < 2 * MODEL_FLOWS; i++) {
		const struct truth *truth = &truths[generation][i];
		const struct flow_tally *want = &truth->tally;
		const struct flow_tally *got =
			prog_test_tally(flows, &truth->key);

		assert_int_equal(got->packets, want->packets);
		assert_int_equal(got->bytes, want->bytes);
		assert_int_equal(got->l2_bytes, want->l2_bytes);
		assert_int_equal(got->first_ns, want->first_ns);
		assert_int_equal(got->last_ns, want->last_ns);
		assert_int_equal(got->attrs.marks, want->attrs.marks);
		assert_int_equal(got->attrs.ttl_min, want->attrs.ttl_min);
		assert_int_equal(got->attrs.ttl_max, want->attrs.ttl_max);
		assert_int_equal(got->attrs.flow_label, want->attrs.flow_label);
	}
}

static uint64_t log_head(const struct prog *prog)
{
	uint64_t head = 0;

	for (uint32_t cpu = 0; cpu < prog->n_cpus; cpu++)
		head += prog->cpus[cpu].log_head;
	return head;
}

/* What leaves L1 is in the log, and in the overflow table where that is full, or there is none. */
TEST(random_packets_are_counted_as_in_a_model)
{
	static const uint32_t logs[] = { 0, LITTLE_LOG, 4 * MODEL_PACKETS };

	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		const struct prog_options options = { .clock = CLOCK_PACKET,
						      .netns = NETNS,
						      .log_slots = logs[i],
						      .has_egress = true };
		struct prog *prog = prog_test_open(&options);

		memset(truths, 0, sizeof(truths));
		for (uint32_t g = 0; g < GENERATIONS; g++) {
			prog_set_generation(prog, g);
			for (uint64_t n = 1; n <= MODEL_PACKETS; n++)
				send_random(prog, truths[g], 1000 * n);
			assert_true(prog_l1_used(prog, g) > 0);
			if (logs[i] <= LITTLE_LOG)
				assert_true(prog_overflow_used(prog, g) >
					    MODEL_FLOWS);
			else
				assert_int_equal(prog_overflow_used(prog, g), 0);
		}
		assert_int_equal(log_head(prog) >= MODEL_FLOWS, logs[i] > 0);
		for (uint32_t g = 0; g < GENERATIONS; g++)
			compare(prog, g);
	}
}

/* The reader left room, which the program learns only when it needs it. */
TEST(log_is_used_again_once_it_was_read)
{
	const struct prog_options options = { .clock = CLOCK_PACKET,
					      .log_slots = LITTLE_LOG };
	struct prog *prog = prog_test_open(&options);

	for (uint64_t round = 1; round <= 2; round++) {
		for (uint16_t port = 1; port <= 500; port++)
			prog_test_tcp(prog, port, ACK);
		assert_in_range(log_head(prog), round * (LITTLE_LOG - 1),
				round * LITTLE_LOG);
		if (round > 1)
			break;
		prog_test_flows(prog, 0);
		/* The reader is woken at each quarter. */
		assert_in_range(prog->n_notices, 3, LOG_WAKE_SHARE);
		for (uint32_t cpu = 0; cpu < prog->n_cpus; cpu++)
			prog->cpus[cpu].log_tail = prog->cpus[cpu].log_head;
	}
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

/* @n flows that all want the same set of L1, 1 the first. */
static void fill_rivals(struct prog *prog, uint16_t *ports, unsigned int n)
{
	ports[0] = 1;
	for (unsigned int i = 1; i < n; i++)
		ports[i] = prog_test_rival(prog, i - 1);
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
