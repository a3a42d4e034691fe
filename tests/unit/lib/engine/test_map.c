// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Parts of maps, on kernels with pages of any size. */
#include "engine/map.h"

#include "lib_test.h"

#include "bpf/types.h"

static const size_t page_sizes[] = { 4 << 10, 16 << 10, 64 << 10 };

/*
 * @total buckets are read in parts of @part: what is mapped begins with a page, ends
 * with the part, and parts follow one another.
 */
static void assert_covered(uint32_t total, uint32_t part, size_t page_size)
{
	uint64_t next = 0, size = sizeof(struct flow_bucket);

	for (uint32_t first = 0; first < total; first += part) {
		uint32_t n = min_u64(part, total - first);
		struct map_span span =
			map_span(first * size, n * size, page_size);

		assert_int_equal(span.offset % page_size, 0);
		assert_true(span.inner < page_size);
		assert_int_equal(span.offset + span.inner, next);
		next = span.offset + span.size;
		assert_int_equal(next, (first + n) * size);
	}
	assert_int_equal(next, total * size);
}

TEST(parts_begin_with_pages_and_cover_all_once)
{
	static const struct {
		uint32_t total, part;
	} cases[] = {
		{ 2048, 64 },	      { 2049, 64 },
		{ 100, 1 },	      { 5 * 64 * 16, 5 * 64 },
		{ 320 * 2 * 7, 320 }, { 1 << 20, 64 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(page_sizes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(cases); k++)
			assert_covered(cases[k].total, cases[k].part,
				       page_sizes[i]);
}

/* The same pages, whether it is the place in the file or in memory that is known. */
TEST(unmapping_finds_what_was_mapped)
{
	for (size_t i = 0; i < ARRAY_SIZE(page_sizes); i++)
		for (uint64_t offset = 0; offset < 1 << 20; offset += 64) {
			uint64_t base = 0x7f0000000000;
			struct map_span span =
				map_span(offset, 2112, page_sizes[i]);
			struct map_span back =
				map_span(base + span.inner, 2112, page_sizes[i]);

			assert_int_equal(back.offset, base);
			assert_int_equal(back.size, span.size);
		}
}
