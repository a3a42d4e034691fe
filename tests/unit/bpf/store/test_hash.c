// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Flows that differ little must not gather in few slots. */
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "lib_test.h"

enum { SLOT_BITS = 12, SLOTS = 1 << SLOT_BITS };

static struct flow_key base(void)
{
	struct flow_key key = { .proto = 6, .ifindex = 2 };

	key.src.words[2] = 0xffff0000;
	key.src.words[3] = 0x0100000a;
	key.dst.words[2] = 0xffff0000;
	key.dst.words[3] = 0x0200000a;
	key.src_port = 1024;
	key.dst_port = 443;
	return key;
}

/* Ways in which the flows of a host differ from each other. */

static void vary_source_port(struct flow_key *key, uint32_t i)
{
	key->src_port += i;
}

static void vary_both_ports(struct flow_key *key, uint32_t i)
{
	key->src_port += i & 63;
	key->dst_port += i >> 6;
}

static void vary_last_address_bytes(struct flow_key *key, uint32_t i)
{
	key->dst.bytes[15] = i & 0xff;
	key->dst.bytes[14] = i >> 8;
}

static void vary_first_address_bytes(struct flow_key *key, uint32_t i)
{
	key->flags = KEY_IPV6;
	key->src.bytes[0] = i & 0xff;
	key->src.bytes[1] = i >> 8;
}

static void vary_address_and_port(struct flow_key *key, uint32_t i)
{
	key->src.bytes[15] = i & 63;
	key->src_port += i >> 6;
}

static void vary_interface(struct flow_key *key, uint32_t i)
{
	key->ifindex += i;
}

static void vary_vlan(struct flow_key *key, uint32_t i)
{
	key->vlan = i | VLAN_PRESENT;
}

static void vary_vni(struct flow_key *key, uint32_t i)
{
	key->tunnel = TUNNEL_VXLAN;
	key->vni = i;
}

static const struct {
	const char *name;
	void (*vary)(struct flow_key *key, uint32_t i);
} patterns[] = {
	{ "source_port", vary_source_port },
	{ "both_ports", vary_both_ports },
	{ "last_address_bytes", vary_last_address_bytes },
	{ "first_address_bytes", vary_first_address_bytes },
	{ "address_and_port", vary_address_and_port },
	{ "interface", vary_interface },
	{ "vlan", vary_vlan },
	{ "vni", vary_vni },
};

enum { N_PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

static uint32_t slot_of(const struct flow_key *key)
{
	return hash_key(key, &host_secret) >> (64 - SLOT_BITS);
}

/* n keys thrown into n slots at random leave 1/e of them, 36.8 %, empty. */
static void slots_fill_as_if_random(void **state)
{
	size_t pattern = (size_t)*state;
	static uint8_t used[SLOTS];
	unsigned int n_used = 0;

	memset(used, 0, sizeof(used));
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct flow_key key = base();

		patterns[pattern].vary(&key, i);
		n_used += !used[slot_of(&key)];
		used[slot_of(&key)] = 1;
	}
	assert_in_range(n_used, SLOTS * 60 / 100, SLOTS);
}

static void assert_hash_depends_on(const struct flow_key *key, size_t word)
{
	uint64_t hash = hash_key(key, &host_secret);

	for (size_t bit = 0; bit < 32; bit++) {
		struct flow_key other = *key;

		((uint32_t *)&other)[word] ^= 1U << bit;
		assert_int_not_equal(hash_key(&other, &host_secret), hash);
	}
}

static void hash_depends_on_every_bit_of_the_key(void **state)
{
	struct flow_key ipv4 = base(), ipv6 = base(), tunnelled = base();

	(void)state;
	ipv6.flags = KEY_IPV6;
	tunnelled.tunnel = TUNNEL_VXLAN;
	for (size_t word = 0; word < sizeof(ipv4) / sizeof(uint32_t); word++) {
		assert_hash_depends_on(&ipv6, word);
		assert_hash_depends_on(&tunnelled, word);
	}
}

/* All others are the same in each key. */
static void hash_over_ipv4_depends_on_every_bit_that_differs(void **state)
{
	static const size_t words[] = { 3, 7, 8, 9, 10, 11 };
	struct flow_key key = base();

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_hash_depends_on(&key, words[i]);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Two networks of 256 hosts each: only the last octets differ. */
static void neighbouring_hosts_do_not_collide(void **state)
{
	static uint64_t hashes[1 << 16];

	(void)state;
	for (uint32_t i = 0; i < 1 << 16; i++) {
		struct flow_key key = { .ifindex = 2, .proto = 17 };

		key.src.bytes[15] = i;
		key.dst.bytes[15] = i >> 8;
		hashes[i] = hash_key(&key, &host_secret);
	}
	qsort(hashes, 1 << 16, sizeof(hashes[0]), compare_u64);
	for (uint32_t i = 1; i < 1 << 16; i++)
		assert_true(hashes[i] != hashes[i - 1]);
	/* As evenly as chance has it: 16 in each of 4096 slots, on average. */
	for (uint32_t i = 0, n; i < 1 << 16; i += n) {
		uint64_t slot = hashes[i] >> 52;

		for (n = 0; i + n < 1 << 16 && hashes[i + n] >> 52 == slot;)
			n++;
		assert_in_range(n, 1, 48);
	}
}

int main(void)
{
	struct CMUnitTest tests[N_PATTERNS + 1] = {
		cmocka_unit_test(neighbouring_hosts_do_not_collide),
		cmocka_unit_test(hash_depends_on_every_bit_of_the_key),
		cmocka_unit_test(hash_over_ipv4_depends_on_every_bit_that_differs),
	};

	for (size_t i = 0; i < N_PATTERNS; i++) {
		tests[i + 1].name = patterns[i].name;
		tests[i + 1].test_func = slots_fill_as_if_random;
		tests[i + 1].initial_state = (void *)i;
	}
	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
