// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Usual segments: whatever the state of a connection and the segment are, usual_observe() leaves
 * it alone, or does what connection_observe() does.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "bpf/rtt/observe.h"
#include "bpf/rtt/usual.h"

static __u64 read_exact_clock(const struct segment *segment)
{
	return segment->now + 1;
}

enum { CASES = 50000, CHANCES = 16 };

struct entry {
	struct conn_head head;
	struct conn_rates rates;
	struct conn_body body;
};

static bool rarely(void)
{
	return !test_below(CHANCES);
}

/* @usual, or a number near it, or rarely any. */
static uint32_t near(uint32_t usual)
{
	if (rarely())
		return (uint32_t)test_random();
	return test_below(4) ? usual : usual + test_below(5) - 2;
}

static uint16_t draw_state(void)
{
	uint16_t state = CONN_SEEN | CONN_ACKED | CONN_SYNCED | CONN_INGRESS;

	if (rarely())
		return (uint16_t)test_random();
	if (rarely())
		state ^= 1 << test_below(16);
	return test_below(2) ? state : state | CONN_MOVED | CONN_DATA_TIMED;
}

static void fill(void *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)test_random();
}

static void draw_side(struct conn_side *side, uint32_t next, uint32_t acked,
		      uint64_t now)
{
	side->next = near(next);
	side->acked = near(acked);
	side->awaited = near(acked + 2);
	side->due = near((uint32_t)(now >> CONN_DUE_SHIFT) + test_below(3));
	side->window_end = near((uint32_t)(now >> CONN_TICK_SHIFT)) +
			   test_below(CONN_RATE_WINDOW) -
			   test_below(3 * CONN_RATE_WINDOW);
	side->window = test_below(3);
	side->head = test_below(4) ? 5 : (uint8_t)(3 + test_below(5));
	side->tail = 5;
}

/* Both sides have sent up to some number, and acknowledged all of it, or nearly. */
static void draw_entry(struct entry *entry, const uint32_t next[2], uint64_t now)
{
	fill(entry, sizeof(*entry));
	entry->head.version = test_below(CHANCES) ? 2 : 3;
	entry->head.talker = test_below(CONN_NEITHER + 1);
	entry->head.opener = test_below(CONN_NEITHER + 1);
	for (int dir = 0; dir < 2; dir++) {
		entry->body.stats[dir].window_max = UINT16_MAX;
		entry->body.stats[dir].refused_run = 0;
		entry->head.state[dir] = draw_state();
		entry->rates.sides[dir].window_next = near(next[dir]);
		draw_side(&entry->head.sides[dir], next[dir], next[!dir], now);
	}
}

static struct segment draw_segment(uint32_t seq, uint32_t ack, uint64_t now)
{
	struct segment segment = {
		.seq = near(seq),
		.ack = near(ack),
		.len = test_below(3) ? test_below(3000) : 0,
		.window = test_below(3),
		.flags = TCP_ACK | (test_below(2) ? TCP_PSH : 0),
		.tick = (uint32_t)(now >> CONN_TICK_SHIFT),
		.now = now,
		.may_time = test_below(2),
	};

	if (rarely())
		segment.flags = (uint8_t)test_random();
	if (rarely())
		segment.mss = 1 + test_below(1500);
	return segment;
}

static struct connection connection_of(struct entry *entry)
{
	return (struct connection){ &entry->head, &entry->rates, &entry->body };
}

/* The usual way changes the same words to the same values as the full one, and no others. */
static void compare(struct entry *usual, const struct entry *before, int dir,
		    const struct segment *segment, bool is_aged)
{
	struct entry whole = *before;
	const struct connection conn = connection_of(&whole);
	struct segment shown = *segment;

	assert_int_equal(segment_judge(&conn, dir, segment), SEGMENT_ITS);
	assert_false(stamps_are_needed(&before->head, dir, segment) &&
		     segment->len);
	assert_int_equal(connection_observe(&conn, dir, &shown), is_aged);
	assert_memory_equal(usual, &whole, sizeof(whole));
	assert_int_equal(shown.taken & ~TAKEN_WINDOW, 0);
	assert_int_equal(shown.exact, 0);
	assert_true(before->head.state[dir] & CONN_INGRESS);
	assert_false(before->head.version & 1);
}

static bool check_order(struct entry *entry, int dir,
			const struct segment *segment)
{
	const struct connection conn = connection_of(entry);

	if (!is_in_order(&entry->head, dir, segment))
		return false;
	assert_int_equal(segment_judge(&conn, dir, segment), SEGMENT_ITS);
	return true;
}

static enum usual observe(struct entry *entry, int dir,
			  const struct segment *segment)
{
	struct conn_rate *rate = &entry->rates.sides[dir];

	if (!is_window_over(&entry->head.sides[dir], segment->tick))
		rate = NULL;
	return usual_observe(&entry->head, rate, dir, segment, CONN_INGRESS);
}

TEST(a_usual_segment_does_what_any_does)
{
	uint32_t usual = 0, with_data = 0, windows = 0, aged = 0, in_order = 0;

	for (int i = 0; i < CASES; i++) {
		uint64_t now = test_random() << 20 & ~0ULL >> 1;
		uint32_t next[2] = { (uint32_t)test_random(),
				     (uint32_t)test_random() };
		int dir = (int)test_below(2);
		struct segment segment = draw_segment(next[dir], next[!dir], now);
		struct entry entry, before;
		enum usual outcome;

		draw_entry(&entry, next, now);
		in_order += check_order(&entry, dir, &segment);
		before = entry;
		outcome = observe(&entry, dir, &segment);
		if (outcome == UNUSUAL) {
			assert_memory_equal(&entry, &before, sizeof(entry));
			continue;
		}
		compare(&entry, &before, dir, &segment, outcome == USUAL_AGED);
		usual++;
		with_data += segment.len > 0;
		windows += is_window_over(&before.head.sides[dir], segment.tick);
		aged += outcome == USUAL_AGED;
	}
	assert_true(in_order > CASES / 200);
	assert_true(with_data > CASES / 200);
	assert_true(usual - with_data > CASES / 200);
	assert_true(windows > CASES / 200);
	assert_true(aged > CASES / 2000);
}
