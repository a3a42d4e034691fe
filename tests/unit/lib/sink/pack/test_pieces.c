// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What is whole of a file that ends anywhere. Compressed lines: test_rotate.c. */
#include "lib_test.h"
#include "sink/pack/packer.h"

#include <sys/mman.h>

static uint64_t cut(const void *bytes, size_t len)
{
	cleanup_fd int fd = memfd_create("file", MFD_CLOEXEC);
	uint64_t size = UINT64_MAX;

	assert_int_equal(write(fd, bytes, len), len);
	assert_string_equal(pieces_suffix(fd), "");
	assert_int_equal(pieces_cut(fd, &size), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), size);
	return size;
}

TEST(lines_are_cut_behind_a_newline)
{
	static const char text[] = "{}\n{\"a\":1}\n{";

	for (size_t len = 0; len < sizeof(text); len++)
		assert_int_equal(cut(text, len), len < 3  ? 0 :
						 len < 11 ? 3 :
							    11);
}

/* Newlines mean nothing in them. */
TEST(messages_are_cut_by_their_lengths)
{
	static const size_t lengths[] = { 16, 40, 300 };
	unsigned char file[356];
	size_t at = 0, end = 0;

	memset(file, '\n', sizeof(file));
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		file[at] = 0;
		file[at + 2] = (unsigned char)(lengths[i] >> 8);
		file[at + 3] = (unsigned char)lengths[i];
		at += lengths[i];
	}
	assert_int_equal(at, sizeof(file));
	for (size_t len = 2; len <= sizeof(file); len++) {
		if (len == 16 || len == 56 || len == 356)
			end = len;
		assert_int_equal(cut(file, len), end);
	}
}

TEST(message_of_no_length_ends_the_file)
{
	static const unsigned char file[] = { 0, 10, 0, 15, 0, 10, 0, 16,
					      0, 0,  0, 0,  0, 0,  0, 0,
					      0, 0,  0, 0,  0, 0,  0, 0 };

	assert_int_equal(cut(file, sizeof(file)), 0);
	assert_int_equal(cut(file + 4, sizeof(file) - 4), 16);
}
