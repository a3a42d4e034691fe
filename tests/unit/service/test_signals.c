// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Signals that are held arrive while the program waits, and at no other time. */
#include "lib_test.h"

/* The command's parts are in no library: compiled in here. */
#include "service/signals.c"

/* Of the terminal, which no test here has. */
void keys_end(void)
{
}

static void ignore(void *object)
{
	(void)object;
}

static void held_signal_ends_the_next_wait(void **state)
{
	(void)state;
	signals_catch(ignore, NULL);
	signals_catch_hangup();
	signals_hold(SIGHUP);
	raise(SIGHUP);
	assert_false(signals_take_hangup());
	assert_int_equal(signals_poll(NULL, 0, -1), -1);
	assert_int_equal(errno, EINTR);
	assert_true(signals_take_hangup());
	assert_int_equal(signals_poll(NULL, 0, 0), 0);
	raise(SIGHUP);
	signals_release_held();
	assert_true(signals_take_hangup());
	signals_release();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_signal_ends_the_next_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
