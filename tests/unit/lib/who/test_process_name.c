// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Whole names of processes whose names the kernel cut. */
#include "lib_seed.h"

#include "who/owners.h"

#define A15 "aaaaaaaaaaaaaaa"
#define A60 A15 A15 A15 A15

/* @arguments: with NULs between them; the last one has its own, unless it is cut. */
#define ARGUMENTS(text) .arguments = text, .n = sizeof(text)
#define CUT(text) .arguments = text, .n = sizeof(text) - 1

static const struct {
	const char *comm, *file, *arguments;
	size_t n;
	const char *expected;
} names[] = {
	{ A15, A15 "bc", ARGUMENTS(""), A15 "bc" },
	{ A15, A15, ARGUMENTS("/x/" A15 "bc"), "" }, /* it is not longer */
	{ A15, A60 "bcd", ARGUMENTS(""), A60 "bcd" },
	{ A15, A60 "bcde", ARGUMENTS("/x/" A15 "bc"), "" }, /* does not fit */
	{ "aaaaaaaaaaaaaa", A15 "bc", ARGUMENTS(A15 "bc"), "" },
	{ "", "", ARGUMENTS(""), "" },
	/* Scripts */
	{ A15, "python3.11",
	  ARGUMENTS("/usr/bin/python3\0-I\0/x/y/" A15 "bc\0z"), A15 "bc" },
	{ A15, "python3.11", ARGUMENTS("python3\0" A15 "bc\0" A15 "de"),
	  A15 "bc" },
	{ A15, "python3.11", ARGUMENTS("python3\0./" A15 "\0/x/" A15 ".conf"),
	  "" },
	{ A15, "python3.11", ARGUMENTS("python3\0" A60 "bcd"), A60 "bcd" },
	{ A15, "python3.11", ARGUMENTS("python3\0" A60 "bcde"), "" },
	{ A15, "python3.11", CUT("python3\0/x/" A15 "bc"), "" },
	{ A15, "python3.11", ARGUMENTS("/" A15 "/b\0\0b" A15 "bc\0/" A15 "bc/"),
	  "" },
	/* The name of a link; of what renamed itself; bytes that are no UTF-8 */
	{ A15, "x", ARGUMENTS(A15 "bc\0-v"), A15 "bc" },
	{ A15, "x", ARGUMENTS("x\0-v"), "" },
	{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	  ARGUMENTS(""),
	  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
};

TEST(names_are_those_of_files_or_arguments)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct session_name name = { .n = (uint32_t)names[i].n };
		char comm[SESSION_COMM_LEN] = "", found[PROCESS_NAME_SIZE];

		memcpy(name.file, names[i].file, strlen(names[i].file));
		memcpy(name.arguments, names[i].arguments, names[i].n);
		memcpy(comm, names[i].comm, strlen(names[i].comm));
		process_name_of(&name, comm, found);
		assert_string_equal(found, names[i].expected);
	}
}

/* Whatever a process writes there: of few characters, so that many begin as the name does. */
TEST(any_bytes_are_read_within_their_bounds)
{
	for (int i = 0; i < 100000; i++) {
		struct session_name name;
		char comm[SESSION_COMM_LEN], found[PROCESS_NAME_SIZE];

		for (size_t at = 0; at < sizeof(name); at++)
			((char *)&name)[at] =
				"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"[test_below(
					40)];
		memset(comm, test_below(20) ? 'a' : 0, sizeof(comm));
		for (uint32_t n = test_below(8); n--;)
			name.arguments[test_below(sizeof(name.arguments))] = '\0';
		name.file[test_below(sizeof(name.file))] = '\0';
		name.n = test_below(sizeof(name.arguments) + 20);
		process_name_of(&name, comm, found);
		if (!*found)
			continue;
		assert_in_range(strnlen(found, sizeof(found)), 16, 63);
		assert_memory_equal(found, comm, 15);
		assert_non_null(
			memmem(&name, sizeof(name), found, strlen(found) + 1));
	}
}
