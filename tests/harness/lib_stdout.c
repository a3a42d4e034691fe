/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_stdout.h"
#include "lib_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static void replace_stdout(struct stdout_fixture *fixture, int by)
{
	fixture->saved_stdout = dup(STDOUT_FILENO);
	assert_true(fixture->saved_stdout >= 0);
	assert_int_equal(dup2(by, STDOUT_FILENO), STDOUT_FILENO);
	close(by);
}

int stdout_make_pipe(void **state)
{
	struct stdout_fixture *fixture = calloc(1, sizeof(*fixture));
	int ends[2];

	assert_non_null(fixture);
	*state = fixture;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fixture->fd = ends[0];
	replace_stdout(fixture, ends[1]);
	return 0;
}

int stdout_make_terminal(void **state)
{
	struct stdout_fixture *fixture = calloc(1, sizeof(*fixture));
	const struct winsize size = { .ws_row = 7, .ws_col = 50 };
	int terminal;

	assert_non_null(fixture);
	*state = fixture;
	fixture->fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	assert_true(fixture->fd >= 0);
	assert_int_equal(grantpt(fixture->fd), 0);
	assert_int_equal(unlockpt(fixture->fd), 0);
	terminal = open(ptsname(fixture->fd), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
	replace_stdout(fixture, terminal);
	return 0;
}

int stdout_restore(void **state)
{
	struct stdout_fixture *fixture = *state;

	dup2(fixture->saved_stdout, STDOUT_FILENO);
	close(fixture->saved_stdout);
	close(fixture->fd);
	free(fixture);
	return 0;
}

char *stdout_written(const struct stdout_fixture *fixture)
{
	static char text[64 * 1024];
	ssize_t n = read(fixture->fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}
