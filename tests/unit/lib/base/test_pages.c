// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "base/pages.h"

TEST(pages_are_zeroes_that_begin_with_a_huge_page)
{
	for (size_t size = 4096; size <= 4 * PAGES_HUGE; size *= 2) {
		unsigned char *bytes = pages_map(size);

		assert_non_null(bytes);
		if (size >= PAGES_HUGE)
			assert_int_equal((uintptr_t)bytes % PAGES_HUGE, 0);
		for (size_t i = 0; i < size; i += 512) {
			assert_int_equal(bytes[i], 0);
			bytes[i] = 1;
		}
		pages_unmap(bytes, size);
	}
	pages_unmap(NULL, 0);
}

TEST(pages_that_there_cannot_be_are_refused)
{
	assert_null(pages_map((size_t)1 << 46));
}
