// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Later fragments carry no ports: they get the ports of their datagram's first fragment. */
#include "prog_test.h"

enum { ID_LOW_BYTE = 5, PAYLOAD = 64 };

static const struct prog_options defaults;

static const struct layer first4[] = {
	ETH, IP4_FRAGMENT(IP4_MORE), UDP, DATA(PAYLOAD), {}
};
static const struct layer later4[] = {
	ETH, IP4_FRAGMENT(9), NEXT(17), DATA(PAYLOAD), {}
};
static const struct layer first6[] = { ETH, IP6,	   FRAGMENT(IP6_MORE),
				       UDP, DATA(PAYLOAD), {} };
static const struct layer later6[] = { ETH,	 IP6,		FRAGMENT(72),
				       NEXT(17), DATA(PAYLOAD), {} };
/* In front of a destination options header, in the first fragment alone. */
static const struct layer first6_options[] = {
	ETH, IP6, FRAGMENT(IP6_MORE), EXT8(60), UDP, DATA(PAYLOAD), {}
};
static const struct layer later6_options[] = { ETH,	      IP6,
					       FRAGMENT(80),  NEXT(60),
					       DATA(PAYLOAD), {} };

/* All packets are one flow, with ports. */
static void assert_one_flow(struct prog *prog, uint64_t packets)
{
	const struct prog_flows *flows = prog_test_flows(prog, 0);

	assert_int_equal(flows->n, 1);
	assert_int_equal(flows->entries[0].key.proto, 17);
	assert_int_equal(flows->entries[0].key.src_port, PACKET_SRC_PORT);
	assert_int_equal(flows->entries[0].key.dst_port, PACKET_DST_PORT);
	assert_int_equal(flows->entries[0].key.flags & KEY_NO_TRANSPORT, 0);
	assert_int_equal(flows->entries[0].tally.packets, packets);
}

/* The later fragment is a flow of its own that says it has no ports. */
static void assert_apart(struct prog *prog, size_t n)
{
	const struct prog_flows *flows = prog_test_flows(prog, 0);
	unsigned int without_ports = 0;

	assert_int_equal(flows->n, n);
	for (size_t i = 0; i < flows->n; i++) {
		const struct flow_key *key = &flows->entries[i].key;

		if (!(key->flags & KEY_NO_TRANSPORT))
			continue;
		without_ports++;
		assert_int_equal(key->src_port, 0);
		assert_int_equal(key->dst_port, 0);
	}
	assert_int_equal(without_ports, 1);
}

/* In VXLAN, and a VLAN: tenants may use the same addresses and numbers at the same time. */
static const struct layer first_inside[] = {
	ETH, IP4, VXLAN(3), ETH, IP4_FRAGMENT(IP4_MORE), UDP, DATA(PAYLOAD), {}
};
static const struct layer later_inside[] = {
	ETH, IP4, VXLAN(3), ETH, IP4_FRAGMENT(9), NEXT(17), DATA(PAYLOAD), {}
};
static const struct layer other_tunnel[] = {
	ETH, IP4, GENEVE(3, 0), IP4_FRAGMENT(9), NEXT(17), DATA(PAYLOAD), {}
};
static const struct layer other_vlan[] = {
	ETH, VLAN(5), IP4_FRAGMENT(9), NEXT(17), DATA(PAYLOAD), {}
};
static const struct layer other_id[] = {
	ETH,	  IP4_FRAGMENT(9), POKE(ID_LOW_BYTE, 0x35),
	NEXT(17), DATA(PAYLOAD),   {}
};
/* RFC 791, 2.3: the protocol is part of a datagram's identity. */
static const struct layer other_protocol[] = {
	ETH, IP4_FRAGMENT(9), NEXT(6), DATA(PAYLOAD), {}
};

TEST(later_fragments_get_the_ports_of_the_first)
{
	static const struct layer *const pairs[][2] = {
		{ first4, later4 },
		{ first6, later6 },
		{ first6_options, later6_options },
		{ first_inside, later_inside },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct prog *prog = prog_test_open(&defaults);

		prog_test_layers(prog, pairs[i][0]);
		prog_test_layers(prog, pairs[i][1]);
		prog_test_layers(prog, pairs[i][1]);
		assert_one_flow(prog, 3);
	}
}

/* Without the first one, or of another datagram. */
TEST(other_fragments_have_no_ports)
{
	static const struct layer *const pairs[][2] = {
		{ NULL, later4 },
		{ first4, other_id },
		{ first4, other_protocol },
		{ first4, other_vlan },
		{ first_inside, other_tunnel },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct prog *prog = prog_test_open(&defaults);

		if (pairs[i][0])
			prog_test_layers(prog, pairs[i][0]);
		prog_test_layers(prog, pairs[i][1]);
		assert_apart(prog, pairs[i][0] ? 2 : 1);
	}
}

TEST(an_id_used_again_has_the_new_ports)
{
	static const struct layer again[] = {
		ETH, IP4_FRAGMENT(IP4_MORE), UDP_PORTS(7, 8), DATA(PAYLOAD), {}
	};
	struct prog *prog = prog_test_open(&defaults);
	const struct prog_flows *flows;

	prog_test_layers(prog, first4);
	prog_test_layers(prog, again);
	prog_test_layers(prog, later4);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(flows->n, 2);
	for (size_t i = 0; i < flows->n; i++)
		assert_int_equal(flows->entries[i].tally.packets,
				 flows->entries[i].key.src_port == 7 ? 2 : 1);
}
