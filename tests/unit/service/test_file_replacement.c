// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Files that take the place of whatever is there; what is kept of regular files, test_services_svg.c sees. */
#include "lib_test.h"

#include "service/file_replacement.h"

#include <sys/stat.h>

struct place {
	char directory[32], path[64];
};

static int make_place(void **state)
{
	static struct place place;

	snprintf(place.directory, sizeof(place.directory), "%s",
		 "/tmp/replacement_XXXXXX");
	assert_non_null(mkdtemp(place.directory));
	snprintf(place.path, sizeof(place.path), "%s/file", place.directory);
	*state = &place;
	return 0;
}

static int remove_place(void **state)
{
	const struct place *place = *state;

	unlink(place->path);
	return rmdir(place->directory); /* nothing is left beside it */
}

static int replace(const struct place *place, const char *text, int err)
{
	struct file_replacement replacement;

	assert_int_equal(
		file_replacement_begin_new(&replacement, place->path, 0644), 0);
	assert_true(fputs(text, replacement.file) >= 0);
	return file_replacement_end(&replacement, err);
}

static void assert_file(const struct place *place, const char *text)
{
	char found[64] = "";
	struct stat status;
	FILE *file = fopen(place->path, "r");

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0644);
	assert_non_null(fgets(found, sizeof(found), file));
	fclose(file);
	assert_string_equal(found, text);
}

#define CASE(name) TEST_OF(name, struct place *place, make_place, remove_place)

CASE(a_new_file_has_its_mode_whatever_the_umask)
{
	const mode_t before = umask(077);

	assert_int_equal(replace(place, "new", 0), 0);
	umask(before);
	assert_file(place, "new");
}

CASE(a_pipe_is_replaced_without_waiting_for_a_reader)
{
	assert_int_equal(mkfifo(place->path, 0600), 0);
	assert_int_equal(replace(place, "new", 0), 0);
	assert_file(place, "new");
}

CASE(a_failure_leaves_the_old_file)
{
	assert_int_equal(replace(place, "old", 0), 0);
	assert_int_equal(replace(place, "new", -ENOSPC), -ENOSPC);
	assert_file(place, "old");
}

CASE(a_missing_directory_is_reported)
{
	struct file_replacement replacement;

	assert_int_equal(file_replacement_begin_new(&replacement,
						    "/nowhere/file", 0644),
			 -ENOENT);
}
