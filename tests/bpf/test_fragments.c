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
static void assert_apart(struct prog *prog)
{
	const struct prog_flows *flows = prog_test_flows(prog, 0);
	unsigned int without_ports = 0;

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

TEST(later_fragments_get_the_ports_of_the_first)
{
	static const struct layer *const pairs[][2] = {
		{ first4, later4 },
		{ first6, later6 },
		{ first6_options, later6_options },
	};
	struct prog *prog = prog_test_open(&defaults);

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(prog_reset(prog), 0);
		prog_test_layers(prog, pairs[i][0]);
		prog_test_layers(prog, pairs[i][1]);
		prog_test_layers(prog, pairs[i][1]);
		assert_one_flow(prog, 3);
	}
}

TEST(fragments_of_a_tunnelled_packet_are_one_flow)
{
	static const struct layer first[] = {
		ETH, IP4,	    VXLAN(3), ETH, IP4_FRAGMENT(IP4_MORE),
		UDP, DATA(PAYLOAD), {}
	};
	static const struct layer later[] = {
		ETH,	  IP4,		 VXLAN(3), ETH, IP4_FRAGMENT(9),
		NEXT(17), DATA(PAYLOAD), {}
	};
	struct prog *prog = prog_test_open(&defaults);

	prog_test_layers(prog, first);
	prog_test_layers(prog, later);
	assert_one_flow(prog, 2);
}

TEST(without_the_first_there_are_no_ports)
{
	struct prog *prog = prog_test_open(&defaults);

	prog_test_layers(prog, later4);
	assert_apart(prog);
	assert_int_equal(prog_test_flows(prog, 0)->n, 1);
}

TEST(another_datagram_is_not_the_first)
{
	static const struct layer other_id[] = {
		ETH,	  IP4_FRAGMENT(9), POKE(ID_LOW_BYTE, 0x35),
		NEXT(17), DATA(PAYLOAD),   {}
	};
	struct prog *prog = prog_test_open(&defaults);

	prog_test_layers(prog, first4);
	prog_test_layers(prog, other_id);
	assert_apart(prog);
}

/* RFC 791, 2.3: the protocol is part of a datagram's identity. */
TEST(another_protocol_is_not_the_first)
{
	static const struct layer other[] = {
		ETH, IP4_FRAGMENT(9), NEXT(6), DATA(PAYLOAD), {}
	};
	struct prog *prog = prog_test_open(&defaults);

	prog_test_layers(prog, first4);
	prog_test_layers(prog, other);
	assert_apart(prog);
}

/* Tenants of VLANs and tunnels may use the same addresses and numbers at the same time. */
TEST(a_datagram_of_another_tenant_is_not_the_first)
{
	static const struct layer first[] = {
		ETH, IP4,	    VXLAN(3), ETH, IP4_FRAGMENT(IP4_MORE),
		UDP, DATA(PAYLOAD), {}
	};
	static const struct layer other_tunnel[] = {
		ETH,	       IP4, GENEVE(3, 0), IP4_FRAGMENT(9), NEXT(17),
		DATA(PAYLOAD), {}
	};
	static const struct layer other_vlan[] = {
		ETH, VLAN(5), IP4_FRAGMENT(9), NEXT(17), DATA(PAYLOAD), {}
	};
	struct prog *prog = prog_test_open(&defaults);

	prog_test_layers(prog, first);
	prog_test_layers(prog, other_tunnel);
	assert_apart(prog);
	assert_int_equal(prog_reset(prog), 0);
	prog_test_layers(prog, first4);
	prog_test_layers(prog, other_vlan);
	assert_apart(prog);
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
