/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netobs/flow.h>

/* Of exactly the size that is promised, so that the address sanitizer sees more. */
static char *room_for(size_t most)
{
	return malloc(most + TEXT_SPARE);
}

static void assert_number(uint64_t value)
{
	char *text = room_for(TEXT_U64_MAX), expected[32];

	snprintf(expected, sizeof(expected), "%" PRIu64, value);
	*text_u64(text, value) = '\0';
	assert_string_equal(text, expected);
	free(text);
}

TEST(numbers_have_all_their_digits)
{
	for (uint64_t power = 1; power; power *= power < UINT64_MAX / 10 ? 10 : 0)
		for (uint64_t digit = 1; digit <= 9; digit++)
			for (int i = -1; i <= 1; i++)
				assert_number(power * digit + (uint64_t)i);
	for (int shift = 0; shift < 64; shift++)
		assert_number(UINT64_MAX >> shift);
}

/* Fractions are least exact at the end of a range. */
TEST(digits_are_right_for_any_number)
{
	uint64_t random = 1;

	for (uint64_t value = 0; value < 10000; value++) {
		assert_number(value);
		assert_number(1000000 - value);
		assert_number(100000000 - value);
		assert_number(10000000000000000 - value);
	}
	for (int i = 0; i < 100000; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		assert_number(random >> (i & 63));
	}
}

/* inet_ntop() is the reference; it has its own way with what starts with 80 zeros. */
TEST(addresses_are_those_of_inet_ntop)
{
	char *text = room_for(NETOBS_ADDR_STR_MAX);

	srand(1);
	for (int i = 0; i < 100000; i++) {
		uint8_t ip[16] = { 0x20, 0x01 };
		char expected[64];

		for (size_t j = 2; j < sizeof(ip); j++)
			ip[j] = rand() % (1 + i % 4) ? 0 : (uint8_t)rand();
		inet_ntop(AF_INET6, ip, expected, sizeof(expected));
		*text_ip(text, ip) = '\0';
		assert_string_equal(text, expected);
	}
	free(text);
}

TEST(ipv4_has_each_octet_in_each_place)
{
	char *text = room_for(NETOBS_ADDR_STR_MAX);

	for (unsigned int octet = 0; octet < 256; octet++) {
		for (int place = 0; place < 4; place++) {
			uint8_t ip[16] = { [10] = 0xff, 0xff, 1, 20, 255, 0 };
			char expected[64];

			ip[12 + place] = (uint8_t)octet;
			inet_ntop(AF_INET, ip + 12, expected, sizeof(expected));
			*text_ip(text, ip) = '\0';
			assert_string_equal(text, expected);
		}
	}
	free(text);
}

TEST(mac_addresses_have_all_their_digits)
{
	const uint8_t mac[6] = { 0x02, 0, 0xff, 0x9a, 0xa9, 0x10 };
	char *text = room_for(TEXT_MAC_MAX);

	*text_mac(text, mac) = '\0';
	assert_string_equal(text, "02:00:ff:9a:a9:10");
	free(text);
}
