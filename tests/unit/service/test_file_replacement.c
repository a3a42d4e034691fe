// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Files that take the place of whatever is there. */
#include "lib_lines.h"
#include "lib_test.h"

#include "service/file_replacement.h"

#include <fcntl.h>
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

static int finish(struct file_replacement *replacement, const char *text, int err)
{
	assert_true(fputs(text, replacement->file) >= 0);
	return file_replacement_end(replacement, err);
}

static int replace_new(const struct place *place, const char *text, int err)
{
	struct file_replacement replacement;

	assert_int_equal(
		file_replacement_begin_new(&replacement, place->path, 0644), 0);
	return finish(&replacement, text, err);
}

static int replace(const char *path, const char *text)
{
	struct file_replacement replacement;

	assert_int_equal(file_replacement_begin(&replacement, path), 0);
	return finish(&replacement, text, 0);
}

static void assert_file(const struct place *place, const char *text, mode_t mode)
{
	char found[64] = "";
	struct stat status;
	FILE *file = fopen(place->path, "r");

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_mode & 0777, mode);
	assert_non_null(fgets(found, sizeof(found), file));
	fclose(file);
	assert_string_equal(found, text);
}

#define CASE(name) TEST_OF(name, struct place *place, make_place, remove_place)

CASE(a_new_file_has_its_mode_whatever_the_umask)
{
	const mode_t before = umask(077);

	assert_int_equal(replace_new(place, "new", 0), 0);
	umask(before);
	assert_file(place, "new", 0644);
}

CASE(a_pipe_is_replaced_without_waiting_for_a_reader)
{
	assert_int_equal(mkfifo(place->path, 0600), 0);
	assert_int_equal(replace_new(place, "new", 0), 0);
	assert_file(place, "new", 0644);
}

/* A file that may not grow stands for a disk that is full. */
CASE(a_failure_leaves_the_old_file)
{
	int r;

	assert_int_equal(replace_new(place, "old", 0), 0);
	assert_int_equal(replace_new(place, "new", -ENOSPC), -ENOSPC);
	assert_file(place, "old", 0644);
	limit_files(2);
	r = replace(place->path, "new");
	limit_files(RLIM_INFINITY);
	assert_true(r < 0);
	assert_file(place, "old", 0644);
}

CASE(a_file_keeps_its_mode_and_a_link_leads_to_it)
{
	char link[80];
	struct stat status;

	snprintf(link, sizeof(link), "%s/link", place->directory);
	assert_int_equal(replace_new(place, "old", 0), 0);
	assert_int_equal(chmod(place->path, 0640), 0);
	assert_int_equal(replace(place->path, "new"), 0);
	assert_file(place, "new", 0640);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(replace(link, "newer"), 0);
	assert_int_equal(lstat(link, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_file(place, "newer", 0640);
	unlink(link);
}

CASE(a_pipe_is_written_in_place)
{
	char text[4] = "";
	struct stat status;
	int fd;

	assert_int_equal(mkfifo(place->path, 0600), 0);
	fd = open(place->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(replace(place->path, "new"), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	close(fd);
	assert_string_equal(text, "new");
	assert_int_equal(lstat(place->path, &status), 0);
	assert_true(S_ISFIFO(status.st_mode));
}

CASE(a_missing_directory_is_reported)
{
	struct file_replacement replacement;

	assert_int_equal(file_replacement_begin_new(&replacement,
						    "/nowhere/file", 0644),
			 -ENOENT);
}
