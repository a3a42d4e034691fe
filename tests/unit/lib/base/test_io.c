// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/io.h"
#include "lib_test.h"

#include <fcntl.h>

enum { SIZE = 1 << 20 };

static char sent[SIZE], received[SIZE];

/* A pipe takes less than that at a time. */
TEST(failure_keeps_the_position)
{
	size_t at = 0, got = 0;
	int fds[2], failures = 0;

	for (size_t i = 0; i < SIZE; i++)
		sent[i] = (char)(i / 251);
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	while (io_write(fds[1], sent, SIZE, &at)) {
		ssize_t n;

		assert_int_equal(errno, EAGAIN);
		assert_true(at < SIZE);
		failures++;
		while ((n = read(fds[0], received + got, SIZE - got)) > 0)
			got += (size_t)n;
	}
	assert_true(failures > 1);
	assert_int_equal(at, SIZE);
	got += (size_t)read(fds[0], received + got, SIZE - got);
	assert_int_equal(got, SIZE);
	assert_memory_equal(received, sent, SIZE);
	close(fds[0]);
	close(fds[1]);
}

TEST(errors_are_those_of_write)
{
	size_t at = 0;

	assert_int_equal(io_write(-1, sent, 1, &at), -EBADF);
	assert_int_equal(at, 0);
	assert_int_equal(io_write(-1, sent, 0, &at), 0);
}
