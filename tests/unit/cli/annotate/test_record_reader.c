// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* All records of a file, of which some lines are none. */
#include "lib_test.h"

#include "base/json_reader.h"
#include "cli/annotate/record_input.h"

struct taken {
	unsigned int n;
	uint64_t sum;	   /* of "a" */
	unsigned int most; /* records; then it takes no more */
};

static int take(const struct record_input *input, const char *text, void *user)
{
	struct taken *taken = user;

	assert_true(*text == '{');
	assert_true(input->number > taken->n);
	taken->n++;
	taken->sum += json_number(json_get(json_parse(text), "a"));
	return taken->n == taken->most ? -ECANCELED : 0;
}

static int read_text(struct record_reader *reader, const char *text,
		     struct taken *taken)
{
	char path[] = "/tmp/netobs-records-XXXXXX";
	const int fd = mkstemp(path);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = record_reader_read(reader, path, take, taken);
	unlink(path);
	return r;
}

TEST(lines_that_are_none_are_counted)
{
	struct record_reader reader = { 0 };
	struct taken taken = { 0 };

	assert_int_equal(read_text(&reader, "{\"a\":1}\n{\"a\":2}\n", &taken), 0);
	assert_false(reader.is_failed);
	assert_int_equal(read_text(&reader,
				   "\n \t\n[1]\n{\"a\":\n{\"a\":4}\n7\n{\"a\":8}",
				   &taken),
			 0);
	assert_true(reader.is_failed);
	assert_int_equal(reader.unreadable, 3);
	assert_int_equal(taken.n, 4);
	assert_int_equal(taken.sum, 15);
}

TEST(it_goes_no_further_than_its_caller)
{
	struct record_reader reader = { 0 };
	struct taken taken = { .most = 2 };

	assert_int_equal(read_text(&reader, "{\"a\":1}\n{\"a\":2}\n{\"a\":4}\nx\n",
				   &taken),
			 -ECANCELED);
	assert_false(reader.is_failed);
	assert_int_equal(taken.sum, 3);
}

TEST(a_file_that_is_not_there_has_failed)
{
	struct record_reader reader = { 0 };
	struct taken taken = { 0 };

	assert_int_equal(record_reader_read(&reader, "/nonexistent/records",
					    take, &taken),
			 -ENOENT);
	assert_true(reader.is_failed);
	assert_int_equal(reader.unreadable, 0);
	assert_int_equal(taken.n, 0);
}
