// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Programs for one configuration count what the general ones count, and packets that bypass L1
 * count as others do: random packets, in random order, through each.
 */
#include "lib_seed.h"
#include "prog_test.h"

#include <bpf/btf.h>

enum { PACKETS = 6000, PORTS = 200, SLOTS = 16384, CONNECTIONS = 256 };
enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 0x10 };

/* Of which the last layer before {} has the ports, if any has. */
static const struct layer kinds[][PACKET_LAYERS] = {
	{ ETH, IP4, UDP },
	{ ETH, IP4, TCP(ACK) },
	{ ETH, IP4, TCP(SYN) },
	{ ETH, IP4, TCP_OPTIONS(PSH | ACK, 12), DATA(100) },
	{ ETH, IP4, TCP(FIN | ACK), PAD(60) },
	{ ETH, IP6, UDP, DATA(7) },
	{ ETH, IP6, TCP(RST) },
	{ ETH, IP6, EXT8(0), TCP(ACK) },
	{ ETH, IP4_OPTIONS(8), TCP(SYN | ACK) },
	{ ETH, VLAN(7), IP4, UDP },
	{ ETH, VLAN(7), VLAN(8), IP6, TCP(ACK) },
	{ ETH, IP4, VXLAN(42), ETH, IP4, TCP(ACK) },
	{ ETH, IP4, GRE(GRE_K, 9), IP6, UDP },
	{ ETH, IP4_FRAGMENT(IP4_MORE), UDP },
	{ ETH, IP4, ICMP(8, 0) },
	{ ETH, ARP },
	{ ETH, IP4, PORTS(132, 12) },
};

/* What programs make of the packets. */
struct result {
	struct prog_flows flows;
	struct counters counters;
	uint32_t bypassed; /* packets */
};

static unsigned int seed;

static size_t count_layers(const struct layer *layers)
{
	size_t n = 0;

	while (layers[n].kind != LAYER_END)
		n++;
	return n;
}

static void build_random(struct packet_bytes *ret_bytes)
{
	const struct layer *kind =
		kinds[lrand48() % (long)(sizeof(kinds) / sizeof(kinds[0]))];
	struct layer layers[PACKET_LAYERS] = { 0 };
	size_t n = count_layers(kind);
	enum layer_kind last = kind[n - 1].kind;

	memcpy(layers, kind, n * sizeof(*layers));
	if (last == LAYER_TCP || last == LAYER_UDP)
		layers[n] = (struct layer)POKE(
			1, (uint32_t)(lrand48() % PORTS)); /* of the source port */
	packet_build(layers, ret_bytes);
}

/* For some packets in a row, in every other row or so. */
static void choose_bypass(struct prog *prog, unsigned int i)
{
	bool bypasses = (seed ^ i / 100 * 2654435761U) >> 31;

	for (uint32_t cpu = 0; cpu < prog->n_cpus; cpu++)
		prog->cpus[cpu].l1_bypass = bypasses ? UINT16_MAX : 0;
}

static void run(const struct prog_options *options, bool may_bypass,
		struct result *ret)
{
	struct prog *prog = prog_test_open(options);
	struct prog_packet packet;
	struct packet_bytes bytes;

	memset(ret, 0, sizeof(*ret));
	srand48(seed);
	packet.bytes = bytes.bytes;
	for (int i = 0; i < PACKETS; i++) {
		packet = (struct prog_packet){ .bytes = bytes.bytes };
		build_random(&bytes);
		packet.len = bytes.len -
			     (size_t)(lrand48() % 50 ? 0 : bytes.len / 10);
		packet.egress = options->has_egress && lrand48() % 2;
		if (may_bypass && !(i % 100))
			choose_bypass(prog, (unsigned int)i);
		ret->bypassed += prog->cpus[0].l1_bypass > 0;
		assert_int_equal(prog_run(prog, &packet, NULL), 0);
	}
	ret->flows = *prog_test_flows(prog, 0);
	ret->counters = prog_counters(prog, 0);
}

/* Except times, which differ between two runs. */
static void assert_alike(const struct result *a, const struct result *b)
{
	assert_int_equal(a->flows.n, b->flows.n);
	assert_in_range(a->flows.n, PORTS, PROG_FLOWS);
	assert_memory_equal(&a->counters, &b->counters, sizeof(a->counters));
	for (size_t i = 0; i < a->flows.n; i++) {
		const struct flow_entry *entry = &a->flows.entries[i];
		const struct flow_entry *other =
			prog_find(&b->flows, &entry->key);
		struct flow_tally x = entry->tally, y;

		assert_non_null(other);
		y = other->tally;
		x.first_ns = x.last_ns = y.first_ns = y.last_ns = 0;
		assert_memory_equal(&x, &y, sizeof(x));
	}
}

static void compare(struct prog_options options, bool may_bypass)
{
	static struct result one, general;

	run(&options, may_bypass, &one);
	options.is_general = true;
	run(&options, false, &general);
	assert_alike(&one, &general);
	if (may_bypass)
		assert_in_range(one.bypassed, PACKETS / 10, PACKETS * 9 / 10);
}

static bool has_cast(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	const bool found =
		kernel && btf__find_by_name_kind(kernel, "bpf_cast_to_kern_ctx",
						 BTF_KIND_FUNC) > 0;

	btf__free(kernel);
	return found;
}

/* Those without and with round-trip times. */
static void compare_both(bool may_bypass, bool has_nat)
{
	struct prog_options options = { .has_egress = true,
					.l1_buckets = 8,
					.log_slots = SLOTS,
					.has_nat = has_nat };

	compare(options, may_bypass);
	options.conn_buckets = CONNECTIONS;
	compare(options, may_bypass);
}

TEST(programs_for_one_configuration_count_as_general_ones)
{
	compare_both(false, false);
}

TEST(programs_for_translations_count_as_general_ones)
{
	if (!has_cast())
		skip();
	compare_both(false, true);
}

TEST(packets_that_bypass_l1_count_as_others)
{
	compare_both(true, false);
}

int main(void)
{
	seed = test_seed();
	return tests_run(NULL, NULL);
}
