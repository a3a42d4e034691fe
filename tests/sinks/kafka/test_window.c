// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Answers in any order, settled from the front. */
#include "lib_test.h"

#include "sinks/kafka/kafka.h"

static struct position position_at(uint64_t seq)
{
	return (struct position){ seq, 2 * seq, 100 * seq };
}

/* As if the spool gave out record @seq, and it was sent. True: it needed to be. */
static bool send_record(struct window *window, uint64_t seq)
{
	struct window_entry *entry;
	uint64_t number;

	assert_int_equal(window_place(window, position_at(seq), &number), 0);
	entry = window_entry(window, number);
	assert_int_equal(entry->end.seq, seq);
	if (entry->state != WINDOW_UNSENT)
		return false;
	entry->state = WINDOW_SENT;
	return true;
}

static void answer(struct window *window, uint64_t seq, enum window_state state)
{
	for (uint64_t n = window->first; n < window->end; n++)
		if (window_entry(window, n)->end.seq == seq)
			window_entry(window, n)->state = state;
}

static void assert_settles(struct window *window, enum window_state state,
			   uint64_t seq)
{
	const struct position expected = position_at(seq);
	enum window_state got;
	struct position end;

	assert_true(window_settle(window, &got, &end));
	assert_int_equal(got, state);
	assert_memory_equal(&end, &expected, sizeof(end));
}

static void assert_unsettled(struct window *window)
{
	enum window_state state;
	struct position end;

	assert_false(window_settle(window, &state, &end));
}

TEST(settles_what_is_complete_from_the_front)
{
	struct window window = { 0 };

	assert_unsettled(&window);
	for (uint64_t seq = 1; seq <= 6; seq++)
		assert_true(send_record(&window, seq));
	answer(&window, 2, WINDOW_DELIVERED);
	answer(&window, 3, WINDOW_DELIVERED);
	answer(&window, 6, WINDOW_DELIVERED);
	assert_unsettled(&window);
	answer(&window, 1, WINDOW_DELIVERED);
	assert_settles(&window, WINDOW_DELIVERED, 3);
	assert_unsettled(&window);
	answer(&window, 4, WINDOW_REFUSED);
	answer(&window, 5, WINDOW_REFUSED);
	assert_settles(&window, WINDOW_REFUSED, 5);
	assert_settles(&window, WINDOW_DELIVERED, 6);
	assert_true(window_is_empty(&window));
	window_free(&window);
}

TEST(rewind_sends_only_what_needs_it)
{
	struct window window = { 0 };

	for (uint64_t seq = 1; seq <= 5; seq++)
		send_record(&window, seq);
	answer(&window, 1, WINDOW_DELIVERED);
	answer(&window, 2, WINDOW_UNSENT);
	answer(&window, 4, WINDOW_DELIVERED);
	assert_settles(&window, WINDOW_DELIVERED, 1);

	window_rewind(&window);
	assert_true(send_record(&window, 2));
	assert_false(send_record(&window, 3)); /* still on its way */
	assert_false(send_record(&window, 4));
	assert_false(send_record(&window, 5));
	assert_true(send_record(&window, 6));
	window_free(&window);
}

/* Records that the spool has not returned again must not be acknowledged to it. */
TEST(rewind_holds_back_what_is_settled)
{
	struct window window = { 0 };

	for (uint64_t seq = 1; seq <= 3; seq++)
		send_record(&window, seq);
	window_rewind(&window);
	for (uint64_t seq = 1; seq <= 3; seq++)
		answer(&window, seq, WINDOW_DELIVERED);
	assert_unsettled(&window);
	assert_false(send_record(&window, 1));
	assert_settles(&window, WINDOW_DELIVERED, 1);
	assert_unsettled(&window);
	assert_false(send_record(&window, 2));
	assert_false(send_record(&window, 3));
	assert_settles(&window, WINDOW_DELIVERED, 3);
	window_free(&window);
}

/* Those that the spool had no room for, or that became too old. */
TEST(records_may_be_gone_after_a_rewind)
{
	struct window window = { 0 };

	for (uint64_t seq = 1; seq <= 4; seq++)
		send_record(&window, seq);
	answer(&window, 1, WINDOW_UNSENT);
	answer(&window, 2, WINDOW_UNSENT);
	window_rewind(&window);
	assert_false(send_record(&window, 3));
	assert_settles(&window, WINDOW_DELIVERED, 2);
	assert_false(send_record(&window, 4));
	assert_true(send_record(&window, 9));
	answer(&window, 3, WINDOW_DELIVERED);
	answer(&window, 4, WINDOW_DELIVERED);
	answer(&window, 9, WINDOW_DELIVERED);
	assert_settles(&window, WINDOW_DELIVERED, 9);
	window_free(&window);
}

TEST(a_new_producer_has_sent_nothing)
{
	struct window window = { 0 };

	for (uint64_t seq = 1; seq <= 3; seq++)
		send_record(&window, seq);
	answer(&window, 2, WINDOW_DELIVERED);
	window_unsend(&window);
	window_rewind(&window);
	assert_true(send_record(&window, 1));
	assert_false(send_record(&window, 2));
	assert_true(send_record(&window, 3));
	window_free(&window);
}

/* Random answers, and rewinds; without gaps, a record's place is its number. */
TEST(any_order_settles_each_record_once)
{
	enum { RECORDS = 100000, AHEAD = 3000 };
	struct window window = { 0 };
	uint64_t given = 0, settled = 0;

	srand(1);
	while (settled < RECORDS) {
		enum window_state got;
		struct position end;

		for (int i = 1 + rand() % 100;
		     i > 0 && given < RECORDS && given < settled + AHEAD; i--)
			send_record(&window, ++given);
		for (int i = rand() % 200; i > 0 && given > settled; i--) {
			uint64_t number =
				settled + (uint64_t)rand() % (given - settled);

			window_entry(&window, number)->state = WINDOW_DELIVERED;
		}
		window_entry(&window, settled)->state = WINDOW_DELIVERED;
		if (rand() % 50 == 0) {
			window_rewind(&window);
			given = settled;
		}
		while (window_settle(&window, &got, &end)) {
			assert_true(end.seq > settled && end.seq <= given);
			settled = end.seq;
		}
	}
	assert_true(window_is_empty(&window));
	window_free(&window);
}
