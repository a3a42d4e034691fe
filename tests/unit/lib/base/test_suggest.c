// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Words that are close to what was typed. */
#include "base/options.h"

#include "lib_test.h"

static const char *suggest(const char *typed)
{
	static const char *const words[] = { "flows", "interface", "top",
					     "abcdefghijklmnopqrstuvwxyz012345" };
	struct suggestion suggestion = suggestion_for(typed, strlen(typed));

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		suggestion_offer(&suggestion, words[i]);
	return suggestion_best(&suggestion);
}

TEST(up_to_two_letters_may_differ)
{
	static const struct {
		const char *typed, *best;
	} cases[] = {
		{ "flows", "flows" },
		{ "flwos", "flows" }, /* swapped */
		{ "flow", "flows" },
		{ "fflowss", "flows" },
		{ "intrface", "interface" },
		{ "itnerfcae", "interface" },
		{ "intrfc", NULL },
		{ "xyz", NULL },
		{ "tpo", "top" },
		{ "xop", "top" },
		{ "xxp", NULL }, /* two of three letters are too many */
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *best = suggest(cases[i].typed);

		if (!cases[i].best)
			assert_null(best);
		else
			assert_string_equal(best, cases[i].best);
	}
}

/* Longer ones are not compared, on either side. */
TEST(words_have_32_letters_at_most)
{
	struct suggestion suggestion = suggestion_for("flows", 5);

	assert_string_equal(suggest("abcdefghijklmnopqrstuvwxyz012345"),
			    "abcdefghijklmnopqrstuvwxyz012345");
	assert_null(suggest("abcdefghijklmnopqrstuvwxyz0123456"));
	suggestion_offer(&suggestion, "abcdefghijklmnopqrstuvwxyz0123456");
	assert_null(suggestion_best(&suggestion));
}
