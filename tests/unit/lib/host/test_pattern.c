// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Names and regular expressions for interfaces. */
#include "lib_test.h"
#include "lib_witness.h"
#include "host/selection.h"

static struct patterns patterns_of(const char *const *texts)
{
	struct patterns patterns = { 0 };
	const struct log silent = { 0 };

	for (; *texts; texts++)
		assert_int_equal(patterns_add(&patterns, *texts, "interfaces",
					      &silent),
				 0);
	return patterns;
}

/* A name has 15 bytes, an altname 127 (ALTIFNAMSIZ of linux/if.h counts its NUL). */
#define SIXTEEN "ABCDEFGHIJKLMNOP"
#define LONGEST \
	SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN "ABCDEFGHIJKLMNO"
#define TOO_LONG LONGEST "P"

TEST(pattern_matches)
{
	static const struct {
		const char *texts[4];
		const char *name;
		bool expected;
	} cases[] = {
		{ { NULL }, "eth0", false },
		{ { "eth0" }, "eth0", true },
		{ { "eth0" }, "eth01", false },
		{ { "eth0" }, "eth", false },
		{ { "eth." }, "eth0", false }, /* a name is no expression */
		{ { LONGEST }, LONGEST, true },
		{ { "/^veth/" }, "veth12", true },
		{ { "/^veth/" }, "myveth", false },
		{ { "/eth/" }, "myveth", true },
		{ { "/^(eth|en)[0-9]+$/" }, "en7", true },
		{ { "/^(eth|en)[0-9]+$/" }, "en7s", false },
		{ { "/^a/" }, "A", false },
		{ { "/a/b/" }, "a/b", true }, /* only the outer slashes are ours */
		{ { "eth0", "eth1", "/^w/" }, "eth1", true },
		{ { "eth0", "eth1", "/^w/" }, "wlan0", true },
		{ { "eth0", "eth1", "/^w/" }, "lo", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct patterns patterns = patterns_of(cases[i].texts);

		if (patterns_match(&patterns, cases[i].name) != cases[i].expected)
			fail_msg("case %zu: %s", i, cases[i].name);
		patterns_done(&patterns);
	}
}

TEST(pattern_names_what_it_is_not_an_expression_for)
{
	static const char *const texts[] = { "eth0", "/eth1/", NULL };
	struct patterns patterns = patterns_of(texts);

	assert_true(patterns_name(&patterns, "eth0"));
	assert_false(patterns_name(&patterns, "eth1"));
	assert_false(patterns_name(&patterns, "eth2"));
	patterns_done(&patterns);
}

/* The message has the option and the text. */
TEST(pattern_refuses_what_is_neither_name_nor_regex)
{
	static const char *const wrong[][2] = {
		{ "", "''" },
		{ "/", "'/'" },
		{ "a/b", "'a/b'" },
		{ "/eth0", "'/eth0'" },
		{ "eth0/", "'eth0/'" },
		{ TOO_LONG, "'" TOO_LONG "'" },
		{ "/[/", "/[/" },
		{ "/(/", "/(/" },
		{ "/a{2,1}/", "/a{2,1}/" },
		{ "/*(/", "/*(/" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct witness witness = { 0 };
		struct log log = witness_log(&witness);
		struct patterns patterns = { 0 };

		assert_int_equal(patterns_add(&patterns, wrong[i][0], "exclude",
					      &log),
				 -EINVAL);
		assert_int_equal(witness.errors, 1);
		assert_true(witness_read(&witness, "exclude: "));
		assert_true(witness_read(&witness, wrong[i][1]));
		assert_int_equal(patterns.count, 0);
		patterns_done(&patterns);
	}
}

TEST(pattern_refused_leaves_the_others)
{
	static const char *const good[] = { "eth0", "/^w/", NULL };
	struct patterns patterns = patterns_of(good);
	const struct log silent = { 0 };

	assert_int_equal(patterns_add(&patterns, "/[/", "interfaces", &silent),
			 -EINVAL);
	assert_int_equal(patterns_add(&patterns, "a/b", "interfaces", &silent),
			 -EINVAL);
	assert_int_equal(patterns.count, 2);
	assert_true(patterns_match(&patterns, "eth0"));
	assert_true(patterns_match(&patterns, "wlan0"));
	patterns_done(&patterns);
	assert_int_equal(patterns.count, 0);
	assert_false(patterns_match(&patterns, "eth0"));
}
