// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which keys occur more than once: wrong on the safe side alone. */
#include "lib_test.h"
#include "flows/merge.h"

enum { KEYS = 20000, EVERY = 10 };

/* splitmix64: any spreading will do. */
static uint64_t spread(uint64_t n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15ULL;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ULL;
	n = (n ^ n >> 27) * 0x94d049bb133111ebULL;
	return n ^ n >> 31;
}

static void note_all(struct repeats *repeats)
{
	for (uint64_t i = 0; i < KEYS; i++)
		repeats_note(repeats, spread(i));
	for (uint64_t i = 0; i < KEYS; i += EVERY)
		repeats_note(repeats, spread(i));
}

TEST(repeats_never_miss_one)
{
	static const uint64_t expected[] = { 0, 1, 100, KEYS, 10 * KEYS };

	for (size_t k = 0; k < sizeof(expected) / sizeof(*expected); k++) {
		struct repeats repeats;

		repeats_init(&repeats, expected[k]);
		note_all(&repeats);
		for (uint64_t i = 0; i < KEYS; i += EVERY)
			assert_true(repeats_may(&repeats, spread(i)));
		repeats_done(&repeats);
	}
}

TEST(repeats_are_rarely_suspected_where_there_is_room)
{
	struct repeats repeats;
	uint32_t suspected = 0;

	repeats_init(&repeats, KEYS);
	note_all(&repeats);
	for (uint64_t i = 0; i < KEYS; i++)
		suspected += i % EVERY && repeats_may(&repeats, spread(i));
	assert_true(suspected < KEYS / 50);
	repeats_done(&repeats);
}

TEST(repeats_once_is_not_again)
{
	struct repeats repeats;

	repeats_init(&repeats, 1);
	assert_false(repeats_may(&repeats, spread(42)));
	repeats_note(&repeats, spread(42));
	assert_false(repeats_may(&repeats, spread(42)));
	assert_false(repeats_may(&repeats, spread(43)));
	repeats_note(&repeats, spread(42));
	assert_true(repeats_may(&repeats, spread(42)));
	assert_false(repeats_may(&repeats, spread(43)));
	repeats_done(&repeats);
}

TEST(repeats_without_memory_suspect_everything)
{
	struct repeats repeats = { 0 };

	repeats_note(&repeats, 1);
	assert_true(repeats_may(&repeats, 1));
	assert_true(repeats_may(&repeats, 2));
	repeats_done(&repeats);
}
