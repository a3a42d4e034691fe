/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Networks: the longest prefix decides, as a search of all of them finds. NETOBS_TEST_SEED repeats a run. */
#include "lib_addr.h"
#include "lib_seed.h"
#include "lib_test.h"

#include <netobs/networks.h>

static struct netobs_networks *make_networks(const struct netobs_network *list,
					     uint32_t n)
{
	struct netobs_networks *networks = NULL;
	char why[NETOBS_ERROR_MAX] = "";

	if (netobs_networks_new(list, n, &why, &networks) < 0)
		fail_msg("%s", why);
	return networks;
}

static void check_name(const struct netobs_networks *networks,
		       const char *address, const char *name)
{
	uint8_t bytes[16];

	set_addr(bytes, address);
	assert_string_equal(netobs_networks_find(networks, bytes), name);
}

TEST(addresses_have_classes)
{
	static const char *const cases[][2] = {
		{ "10.0.0.0", "private" },
		{ "10.255.255.255", "private" },
		{ "11.0.0.0", "internet" },
		{ "9.255.255.255", "internet" },
		{ "172.16.0.1", "private" },
		{ "172.32.0.1", "internet" },
		{ "192.168.1.1", "private" },
		{ "100.64.0.1", "private" },
		{ "127.1.2.3", "loopback" },
		{ "169.254.1.1", "link-local" },
		{ "224.0.0.1", "multicast" },
		{ "239.255.255.255", "multicast" },
		{ "240.0.0.0", "internet" },
		{ "255.255.255.255", "broadcast" },
		{ "0.0.0.0", "unspecified" },
		{ "::", "unspecified" },
		{ "::1", "loopback" },
		{ "::2", "internet" },
		{ "fd00::1", "private" },
		{ "fe80::1", "link-local" },
		{ "ff02::1", "multicast" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
		{ "2001:db8::1", "internet" },
	};
	struct netobs_networks *networks = make_networks(NULL, 0);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_name(networks, cases[i][0], cases[i][1]);
	netobs_networks_free(networks);
}

TEST(names_of_ones_own_come_first)
{
	static const struct netobs_network list[] = {
		{ sizeof(*list), "company", "10.0.0.0/8,2001:db8::/32" },
		{ sizeof(*list), "zone a", "10.1.0.0/16, 2001:db8:1::/48" },
		{ sizeof(*list), "database", "10.1.2.3 10.1.2.4/32" },
		{ sizeof(*list), "all", "::/0" },
	};
	struct netobs_networks *networks = make_networks(list, ARRAY_SIZE(list));

	check_name(networks, "10.0.0.1", "company");
	check_name(networks, "10.1.0.1", "zone a");
	check_name(networks, "10.1.2.2", "zone a");
	check_name(networks, "10.1.2.3", "database");
	check_name(networks, "10.1.2.4", "database");
	check_name(networks, "10.1.2.5", "zone a");
	check_name(networks, "10.2.0.0", "company");
	check_name(networks, "11.0.0.0", "all");
	check_name(networks, "192.168.0.1", "private");
	check_name(networks, "2001:db8:1::1", "zone a");
	check_name(networks, "2001:db8:2::1", "company");
	netobs_networks_free(networks);
}

/* ---- Random ones ----------------------------------------------------------------------- */

enum { RANDOM = 300, ASKED = 20000 };

struct random_prefix {
	uint8_t bytes[16];
	unsigned int len;
	char name[8], cidr[INET6_ADDRSTRLEN + 8];
};

static bool has_prefix(const uint8_t address[16],
		       const struct random_prefix *prefix)
{
	for (unsigned int bit = 0; bit < prefix->len; bit++)
		if ((address[bit / 8] ^ prefix->bytes[bit / 8]) &
		    (0x80 >> bit % 8))
			return false;
	return true;
}

/* Of few bits, so that they contain each other. */
static void draw_prefix(unsigned int i, struct random_prefix *prefix)
{
	char text[INET6_ADDRSTRLEN];

	memset(prefix->bytes, 0, sizeof(prefix->bytes));
	prefix->bytes[0] = 0x20;
	prefix->len = 8 + test_below(24);
	for (unsigned int bit = 8; bit < prefix->len; bit++)
		if (!(test_random() >> 8 & 7))
			prefix->bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	inet_ntop(AF_INET6, prefix->bytes, text, sizeof(text));
	snprintf(prefix->cidr, sizeof(prefix->cidr), "%s/%u", text, prefix->len);
	snprintf(prefix->name, sizeof(prefix->name), "n%u", i);
}

static bool is_twin(const struct random_prefix *prefixes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(prefixes[i].cidr, prefixes[n].cidr))
			return true;
	return false;
}

static const char *search_all(const struct random_prefix *prefixes,
			      const uint8_t address[16])
{
	const struct random_prefix *best = NULL;

	for (unsigned int i = 0; i < RANDOM; i++)
		if (has_prefix(address, &prefixes[i]) &&
		    (!best || prefixes[i].len > best->len))
			best = &prefixes[i];
	return best ? best->name : "internet";
}

TEST(the_longest_prefix_decides)
{
	static struct random_prefix prefixes[RANDOM];
	static struct netobs_network list[RANDOM];
	struct netobs_networks *networks;

	for (unsigned int i = 0; i < RANDOM; i++) {
		do
			draw_prefix(i, &prefixes[i]);
		while (is_twin(prefixes, i));
		list[i] = (struct netobs_network){ sizeof(*list),
						   prefixes[i].name,
						   prefixes[i].cidr };
	}
	networks = make_networks(list, RANDOM);
	for (int i = 0; i < ASKED; i++) {
		uint8_t address[16] = { 0x20 };

		for (size_t at = 1; at < 4; at++)
			address[at] = (uint8_t)(test_random() >> 8 &
						test_random() >> 8);
		address[15] = test_random() & 1 ? 0xff : 0;
		assert_string_equal(netobs_networks_find(networks, address),
				    search_all(prefixes, address));
	}
	netobs_networks_free(networks);
}

TEST(what_is_wrong_is_explained)
{
	static const char *const cases[][2] = {
		{ "10.0.0.1/8", "a: '10.0.0.1/8' has bits behind its prefix" },
		{ "10.0.0.0/33", "a: '10.0.0.0/33' has a wrong length" },
		{ "2001:db8::/129", "has a wrong length" },
		{ "10.0.0.0/", "has a wrong length" },
		{ "10.0.0.0/-1", "has a wrong length" },
		{ "host", "a: 'host' is not an address or a prefix" },
		{ "", "a: it has no prefix" },
		{ ", ,", "a: it has no prefix" },
	};
	struct netobs_network list[2] = { { sizeof(*list), "a", "" },
					  { sizeof(*list), "b", "10.0.0.0/8" } };
	struct netobs_networks *networks;
	char why[NETOBS_ERROR_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		list[0].cidr = cases[i][0];
		assert_int_equal(netobs_networks_new(list, 1, &why, &networks),
				 -EINVAL);
		assert_non_null(strstr(why, cases[i][1]));
	}
	list[0].cidr = "10.0.0.0/8";
	assert_int_equal(netobs_networks_new(list, 2, &why, &networks), -EINVAL);
	assert_non_null(strstr(why, "has a prefix that"));
	list[0].name = "a name that has more bytes than it may";
	assert_int_equal(netobs_networks_new(list, 1, &why, &networks), -EINVAL);
	assert_int_equal(netobs_networks_new(NULL, 1, &why, &networks), -EINVAL);
	assert_null(netobs_networks_find(NULL, NULL));
	netobs_networks_free(NULL);
}
