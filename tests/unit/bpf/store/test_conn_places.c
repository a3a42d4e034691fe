// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Keys of connections, and which of those in a bucket gives its place to another one. */
#include "lib_test.h"

#include "bpf/store/conn_places.h"

enum { IDLE = 60 };

static uint32_t choose(const struct conn_bucket *bucket, uint64_t at, bool has_syn)
{
	struct conn_choice choice;

	conn_choose(bucket, 3, at, has_syn, IDLE, &choice);
	return choice.way;
}

TEST(a_place_that_is_free_is_taken_first)
{
	struct conn_bucket bucket = { 0 };

	assert_int_equal(choose(&bucket, 0, true), 3);
	for (uint32_t way = 0; way < CONN_WAYS; way++)
		bucket.tags[way] = 1;
	bucket.tags[6] = 0;
	assert_int_equal(choose(&bucket, 0, true), 6);
}

/*
 * What can be in a bucket. The one with the higher rank gives its place first; a crowd is of two
 * that are half-open or unanswered. 0: it gives it to none.
 */
struct occupant {
	enum conn_class class;
	uint32_t since;
	int rank, crowd_rank;
	bool is_taken_by_syn;
};

static const struct occupant occupants[] = {
	{ CONN_HALF_OPEN, 900, 99, 99, true },
	{ CONN_HALF_OPEN, 2, 98, 98, true },
	{ CONN_CLOSED, 900, 97, 97, true },
	{ CONN_CLOSED, IDLE, 96, 96, true },
	{ CONN_HALF_OPEN, 1, 85, 95, true },
	{ CONN_HALF_OPEN, 0, 84, 94, true },
	{ CONN_CLOSED, IDLE - 1, 93, 93, true },
	{ CONN_CLOSED, 0, 92, 92, true },
	{ CONN_UNANSWERED, 900, 75, 83, true },
	{ CONN_UNANSWERED, IDLE, 74, 82, true },
	{ CONN_UNANSWERED, IDLE - 1, 73, 81, false },
	{ CONN_UNANSWERED, 0, 72, 80, false },
	{ CONN_OPEN, 16000, 79, 79, false },
	{ CONN_OPEN, IDLE, 78, 78, false },
};

static bool is_about_to_open(const struct occupant *one)
{
	return one->class == CONN_HALF_OPEN || one->class == CONN_UNANSWERED;
}

static uint16_t age_of(const struct occupant *one, uint64_t at)
{
	return conn_age(one->class,
			at - ((uint64_t)one->since << CONN_AGE_SHIFT));
}

/* Which of both gives its place; NULL: none. */
static const struct occupant *expect(const struct occupant *a,
				     const struct occupant *b, bool has_syn)
{
	const bool is_crowd = is_about_to_open(a) && is_about_to_open(b);
	const int rank_a = is_crowd ? a->crowd_rank : a->rank;
	const int rank_b = is_crowd ? b->crowd_rank : b->rank;

	if (has_syn && !a->is_taken_by_syn)
		return b->is_taken_by_syn ? b : NULL;
	if (has_syn && !b->is_taken_by_syn)
		return a;
	return rank_a > rank_b ? a : b;
}

/* Each two of them beside open ones, which give their place to no other. */
TEST(places_are_taken_from_half_open_and_ended_then_idle_ones)
{
	const uint64_t second = 1ULL << CONN_AGE_SHIFT, at = 20000 * second;
	const size_t n = ARRAY_SIZE(occupants);

	for (size_t i = 0; i < n * n; i++) {
		const struct occupant *a = &occupants[i / n];
		const struct occupant *b = &occupants[i % n];
		struct conn_bucket bucket;

		if (a == b)
			continue;
		for (uint32_t way = 0; way < CONN_WAYS; way++) {
			bucket.tags[way] = 1;
			bucket.ages[way] = conn_age(CONN_OPEN, at - way * second);
		}
		bucket.ages[5] = age_of(a, at);
		bucket.ages[7] = age_of(b, at);
		for (int has_syn = 0; has_syn < 2; has_syn++) {
			const struct occupant *gone = expect(a, b, has_syn);

			assert_int_equal(choose(&bucket, at, has_syn),
					 !gone	   ? CONN_WAYS :
					 gone == a ? 5 :
						     7);
		}
	}
}

/* Each CPU has its own. */
TEST(a_clock_that_is_behind_makes_nothing_idle)
{
	const uint64_t second = 1ULL << CONN_AGE_SHIFT, at = 20000 * second;
	struct conn_bucket bucket;

	for (uint32_t way = 0; way < CONN_WAYS; way++) {
		bucket.tags[way] = 1;
		bucket.ages[way] = conn_age(CONN_OPEN, at + second);
	}
	assert_int_equal(choose(&bucket, at, false), CONN_WAYS);
}

TEST(both_directions_have_one_key)
{
	struct flow_key key = { .ifindex = 3,
				.src_port = 40000,
				.dst_port = 443,
				.vni = 5,
				.tunnel = 1,
				.outer_hash = 77,
				.flags = KEY_EGRESS };
	struct conn_body body = { 0 };
	struct conn_key there, answer;
	struct flow_key back;

	key.src.lanes[1] = 11;
	key.dst.lanes[1] = 22;
	back = key;
	back.src = key.dst;
	back.dst = key.src;
	back.src_port = 443;
	back.dst_port = 40000;
	back.outer_hash = 78;
	back.flags = KEY_AGAIN;
	/* Each direction may be sampled at a rate of its own. */
	((uint64_t *)&back)[5] |= key_rate_bits(RATES - 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(connection_dir(&key), !connection_dir(&back));
		there = conn_key_of(&key, connection_dir(&key));
		answer = conn_key_of(&back, connection_dir(&back));
		conn_set_key(&body, &there);
		assert_true(is_connection(&body, &answer));
		body.key.dst_port++;
		assert_false(is_connection(&body, &answer));
		key.src_port = key.dst_port = back.src_port = back.dst_port = 1;
		if (i == 1)
			key.src.lanes[0] = back.dst.lanes[0] = ~0ULL;
	}
	key.dst = key.src;
	assert_int_equal(connection_dir(&key), -1);
}
