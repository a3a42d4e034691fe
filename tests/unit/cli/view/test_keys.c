/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Keys on a terminal of the test's own. */
#include "lib_test.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>

#include "cli/view/keys.h"

enum { QUIT = 42, LEFT_RAW = 43, NO_KEYS = 44 };

/* What a screen does until someone presses q. */
static int wait_for_quit(void)
{
	struct termios now;
	struct pollfd fd;

	keys_start();
	fd = (struct pollfd){ .fd = keys_fd(), .events = POLLIN };
	if (fd.fd < 0 || write(STDOUT_FILENO, "ready", 5) != 5)
		return NO_KEYS;
	while (poll(&fd, 1, 10000) > 0) {
		if (!(keys_read() & KEY_QUIT))
			continue;
		keys_end();
		tcgetattr(STDIN_FILENO, &now);
		return now.c_lflag & ECHO && now.c_lflag & ICANON ? QUIT :
								    LEFT_RAW;
	}
	return NO_KEYS;
}

TEST(q_ends_and_nothing_is_echoed)
{
	char text[64] = "";
	int terminal, status;
	pid_t child = forkpty(&terminal, NULL, NULL, NULL);

	if (!child)
		_exit(wait_for_quit());
	assert_true(child > 0);
	assert_int_equal(read(terminal, text, 5), 5);
	assert_int_equal(write(terminal, "xy q", 4), 4);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), QUIT);
	assert_true(read(terminal, text, sizeof(text)) <= 0);
	close(terminal);
}

TEST(without_a_terminal_there_are_no_keys)
{
	int saved = dup(STDIN_FILENO), fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	keys_start();
	assert_int_equal(keys_fd(), -1);
	keys_end();
	assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
	close(saved);
	close(fds[0]);
	close(fds[1]);
}
