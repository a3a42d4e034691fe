/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include "base/options.h"
#include "service/options/args.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct config {
	struct args_list names;
	uint32_t wait_ms, small, repeated;
	uint64_t count, given;
	int mode;
	bool on;
	const char *file;
};

#define CHOICES_speeds(_) "slow" _ "fast"
#define OPTION(letter, name, type, member)                               \
	ARGS_OPTION(letter, name, type, offsetof(struct config, member), \
		    ARGS_SOURCE_NONE, "", name)

static const struct args_option test_options[] = {
	OPTION("i", "name", list("NAME"), names),
	OPTION("w", "wait", seconds, wait_ms),
	OPTION("n", "count", number("N"), count),
	ARGS_OPTION("", "small", number32("N"), offsetof(struct config, small),
		    ARGS_SOURCE_PACKETS, "", "small"),
	OPTION("", "mode", choice(speeds), mode),
	OPTION("", "on", switch, on),
	OPTION("v", "verbose", repeat, repeated),
	ARGS_OPTION("f", "file", string("FILE"), offsetof(struct config, file),
		    ARGS_SOURCE_INTERFACES, "", "file"),
	{ .name = NULL }
};

static const struct args_command test_command = {
	.name = "test",
	.summary = "Test",
	.options = test_options,
	.positional = "not taken",
	.given = offsetof(struct config, given),
};

/* Parse a line of words separated by blanks. */
static enum args_result parse(const char *line, struct config *config)
{
	static char words[256];
	char *argv[16] = { (char[]){ "test" } }, *state = NULL;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok_r(words, " ", &state); w;
	     w = strtok_r(NULL, " ", &state))
		argv[argc++] = w;
	*config = (struct config){ .mode = -1 };
	return args_parse(&test_command, argc, argv, config);
}

TEST(each_type_is_stored_in_its_field)
{
	struct config config;

	assert_int_equal(
		parse("-i a --name b -w 1.5 -n 18446744073709551615 --small=4294967295 "
		      "--mode fast --on -vv --file -",
		      &config),
		ARGS_RUN);
	assert_int_equal(config.names.n, 2);
	assert_string_equal(config.names.items[0], "a");
	assert_string_equal(config.names.items[1], "b");
	assert_null(config.names.items[2]);
	assert_int_equal(config.wait_ms, 1500);
	assert_true(config.count == UINT64_MAX);
	assert_int_equal(config.small, UINT32_MAX);
	assert_int_equal(config.mode, 1);
	assert_true(config.on);
	assert_int_equal(config.repeated, 2);
	assert_string_equal(config.file, "-");
	args_list_clear(&config.names);
	assert_null(config.names.items);
}

TEST(nothing_given_leaves_everything_as_it_was)
{
	struct config config;

	assert_int_equal(parse("", &config), ARGS_RUN);
	assert_null(config.names.items);
	assert_int_equal(config.mode, -1);
	assert_false(config.on);
}

TEST(what_was_given_is_known)
{
	const struct args_option *found;
	struct config config;

	assert_int_equal(parse("--on --small 1 -f x", &config), ARGS_RUN);
	found = args_find_given(&test_command, config.given, ARGS_SOURCE_NONE);
	assert_string_equal(found->name, "small");
	found = args_find_given(&test_command, config.given,
				ARGS_SOURCE_INTERFACES);
	assert_string_equal(found->name, "file");
	assert_string_equal(args_label(found->letter, found->name).text, "-f");
	assert_string_equal(args_label("", "small").text, "--small");

	assert_int_equal(parse("--on", &config), ARGS_RUN);
	assert_null(args_find_given(&test_command, config.given,
				    ARGS_SOURCE_PACKETS));
}

TEST(wrong_lines_are_refused)
{
	static const char *const lines[] = {
		"operand",
		"--on operand",
		"-z",
		"--nope",
		"--nope=1",
		"-n",
		"--count",
		"--on=1",
		"--help=1",
		"-n x",
		"-n 0",
		"-n -1",
		"-n 18446744073709551616",
		"--small 4294967296",
		"--mode",
		"--mode fas",
		"--mode=",
		"--file=",
		"--name=",
		"-w 0",
		"-w s",
		"-w 1 s",
		"-w 1e3",
		"-w inf",
		"-w 1.2.3",
	};

	for (size_t i = 0; i < LENGTH(lines); i++) {
		struct config config;

		if (parse(lines[i], &config) != ARGS_WRONG)
			fail_msg("'%s' was taken", lines[i]);
		args_list_clear(&config.names);
	}
}

TEST(help_wins_over_what_follows)
{
	struct config config;

	assert_int_equal(parse("-h --nope", &config), ARGS_HELP);
	assert_int_equal(parse("--on --help", &config), ARGS_HELP);
}
