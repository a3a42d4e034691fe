/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* RFC 4231. */
#include "lib_test.h"

#include "base/hash.h"

#include <string.h>

static void check_mac(const void *key, size_t key_len, const char *text,
		      const uint8_t expected[SHA256_SIZE])
{
	uint8_t mac[SHA256_SIZE];

	hmac_sha256(key, key_len, text, strlen(text), mac);
	assert_memory_equal(mac, expected, sizeof(mac));
}

static void codes_are_those_of_the_rfc(void **state)
{
	static const uint8_t first[] = { 0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb,
					 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce,
					 0xaf, 0x0b, 0xf1, 0x2b, 0x88, 0x1d,
					 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7,
					 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32,
					 0xcf, 0xf7 };
	static const uint8_t second[] = { 0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60,
					  0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26,
					  0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00,
					  0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
					  0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec,
					  0x38, 0x43 };
	uint8_t key[20];

	(void)state;
	memset(key, 0x0b, sizeof(key));
	check_mac(key, sizeof(key), "Hi There", first);
	check_mac("Jefe", 4, "what do ya want for nothing?", second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_those_of_the_rfc),
	};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
