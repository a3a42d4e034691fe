// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Signals that are held arrive while the program waits, and at no other time. */
#include "lib_test.h"

#include <signal.h>
#include <sys/wait.h>

#include "service/signals.h"

static void ignore(void *object)
{
	(void)object;
}

TEST(held_signal_ends_the_next_wait)
{
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

static void write_farewell(void)
{
	static const char text[] = "restored";

	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
}

/* The second one ends the program, as its parent sees. */
TEST(what_ends_the_program_restores_the_terminal_before)
{
	static const int numbers[] = { SIGTERM, SIGQUIT };

	for (size_t i = 0; i < 2; i++) {
		char text[32] = "";
		int ends[2], status;
		pid_t child;

		assert_int_equal(pipe(ends), 0);
		child = fork();
		if (!child) {
			dup2(ends[1], STDOUT_FILENO);
			signal(SIGQUIT, SIG_DFL);
			signals_catch(ignore, NULL);
			signals_restore_by(write_farewell);
			raise(SIGTERM);
			raise(numbers[i]);
			_exit(1);
		}
		close(ends[1]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), numbers[i]);
		assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
		assert_string_equal(text, "restored");
		close(ends[0]);
	}
}
