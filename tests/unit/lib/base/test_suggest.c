// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Words that are close to what was typed. */
#include "base/options.h"

#include "lib_test.h"

static const char *suggest(const char *typed)
{
	static const char *const words[] = { "flows", "interface", "top" };
	struct suggestion suggestion = suggestion_for(typed, strlen(typed));

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		suggestion_offer(&suggestion, words[i]);
	return suggestion_best(&suggestion);
}

TEST(a_letter_may_differ_or_two_be_swapped)
{
	static const struct {
		const char *typed, *best;
	} cases[] = {
		{ "flows", "flows" },
		{ "flwos", "flows" }, /* swapped */
		{ "flow", "flows" },
		{ "flowss", "flows" },
		{ "fflowss", NULL },
		{ "intrface", "interface" },
		{ "itnerface", "interface" },
		{ "itnerfcae", NULL },
		{ "intrfc", NULL },
		{ "xyz", NULL },
		{ "tpo", "top" },
		{ "xop", "top" },
		{ "xxp", NULL },
		{ "", NULL },
		{ "much-longer-than-any-word", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *best = suggest(cases[i].typed);

		if (!cases[i].best)
			assert_null(best);
		else
			assert_string_equal(best, cases[i].best);
	}
}
