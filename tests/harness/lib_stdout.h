/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a program writes to standard output, as setup and teardown of a test. */
#ifndef NETOBS_TEST_STDOUT_H
#define NETOBS_TEST_STDOUT_H

/* Standard output, exchanged for the other end of @fd. */
struct stdout_fixture {
	int saved_stdout;
	int fd;
};

/* The other end is that of a pipe; of a terminal with 7 lines and 50 columns. */
int stdout_make_pipe(void **state);
int stdout_make_terminal(void **state);

int stdout_restore(void **state);

/* All that was written so far, since the last call. */
char *stdout_written(const struct stdout_fixture *fixture);

#endif
