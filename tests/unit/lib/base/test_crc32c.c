// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "base/hash.h"

/* RFC 3720, B.4. */
TEST(examples_of_the_rfc)
{
	uint8_t bytes[32];

	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
}

/* Any cut, so that the parts of a word at both ends come in all lengths. */
TEST(parts_give_what_the_whole_gives)
{
	char text[100];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 73);
	for (size_t start = 0; start < 16; start++) {
		const char *from = text + start;
		size_t len = sizeof(text) - start;
		uint32_t whole = crc32c(0, from, len);

		for (size_t cut = 0; cut <= len; cut++)
			assert_int_equal(crc32c(crc32c(0, from, cut),
						from + cut, len - cut),
					 whole);
	}
}
