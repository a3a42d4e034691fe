// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The names of rotated files: files with other names must not be removed. */
#include "lib_test.h"

#include "sink/file/rotate_disk.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void names_tell_the_time(void **state)
{
	static const struct {
		const char *path, *suffix;
		unsigned int number;
		const char *name, *part;
	} cases[] = {
		{ "/var/log/flows.json", "", 0, "flows-20261121T164500Z.json",
		  "flows.json.part" },
		{ "/var/log/flows.json", ".gz", 0,
		  "flows-20261121T164500Z.json.gz", "flows.json.part" },
		{ "/flows.json", "", 7, "flows-20261121T164500Z_007.json",
		  "flows.json.part" },
		{ "flows", ".zst", 1234, "flows-20261121T164500Z_1234.zst",
		  "flows.part" },
		{ "/x/.flows", "", 0, ".flows-20261121T164500Z", ".flows.part" },
		{ "/x/a.b-c.json", "", 1, "a.b-c-20261121T164500Z_001.json",
		  "a.b-c.json.part" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rotate_names names;
		struct rotate_final final = { 1795279500, cases[i].number,
					      cases[i].suffix };
		struct rotate_final read = { 0 };
		rotate_name name;

		assert_int_equal(rotate_names_init(&names, cases[i].path), 0);
		assert_int_equal(*names.dir, '/');
		assert_string_equal(names.part, cases[i].part);
		rotate_names_format(&names, &final, "", name);
		assert_string_equal(name, cases[i].name);
		assert_true(rotate_names_parse(&names, name, "", &read));
		assert_int_equal(read.start, final.start);
		assert_int_equal(read.number, final.number);
		assert_string_equal(read.suffix, final.suffix);
		assert_false(rotate_names_parse(&names, name, ROTATE_PART, &read));
		rotate_names_format(&names, &final, ROTATE_PART, name);
		assert_true(rotate_names_parse(&names, name, ROTATE_PART, &read));
	}
}

static void other_names_are_not_taken_for_them(void **state)
{
	static const char *const others[] = {
		"flows.json",
		"flows.json.part",
		"flows-.json",
		"flows-20261121.json",
		"flows-20261121T164500.json",
		"flows-20261121T16450Z.json",
		"flows-2026112xT164500Z.json",
		"flows-20261121t164500z.json",
		"flows-20261121T164500Z",
		"flows-20261121T164500Z.jsonl",
		"flows-20261121T164500Z.json.bak",
		"flows-20261121T164500Z.json.gz.gz",
		"flows-20261121T164500Z.json.part",
		"flows-20261121T164500Z_.json",
		"flows-20261121T164500Z_a.json",
		"flows-20261121T164500Z_001_002.json",
		"flows-20261121T164500Z_000.json",
		"flows-20261131T164500Z.json",
		"xflows-20261121T164500Z.json",
		"flows-20261121T164500Z.txt",
		"flows-x-20261121T164500Z.json",
		"",
	};
	struct rotate_names names;
	struct rotate_final final;

	(void)state;
	assert_int_equal(rotate_names_init(&names, "/x/flows.json"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (rotate_names_parse(&names, others[i], "", &final))
			fail_msg("%s", others[i]);
}

static void paths_that_are_no_files_are_refused(void **state)
{
	struct rotate_names names;
	char name[NAME_MAX + 1];

	(void)state;
	assert_int_equal(rotate_names_init(&names, "/x/"), -EISDIR);
	assert_int_equal(rotate_names_init(&names, "/x/.."), -EISDIR);
	assert_int_equal(rotate_names_init(&names, "."), -EISDIR);
	memset(name, 'x', sizeof(name) - 1);
	name[NAME_MAX] = '\0';
	assert_int_equal(rotate_names_init(&names, name), -ENAMETOOLONG);
}

/* The longest name that is taken has room for all that comes behind it. */
static void longest_name_fits(void **state)
{
	struct rotate_names names;
	struct rotate_final final = { 1795279500, 99999, ".zst" }, read;
	rotate_name made;
	char name[NAME_MAX + 1] = "";

	(void)state;
	while (strlen(name) < NAME_MAX) {
		name[strlen(name)] = 'x';
		if (rotate_names_init(&names, name))
			break;
		rotate_names_format(&names, &final, ROTATE_PART, made);
		assert_true(strlen(made) <= NAME_MAX);
		assert_true(rotate_names_parse(&names, made, ROTATE_PART, &read));
	}
	assert_true(strlen(name) > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_tell_the_time),
		cmocka_unit_test(other_names_are_not_taken_for_them),
		cmocka_unit_test(paths_that_are_no_files_are_refused),
		cmocka_unit_test(longest_name_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
