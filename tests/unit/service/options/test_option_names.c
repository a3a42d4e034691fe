/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The library's names of options in its messages become those of the command line. */
#include "lib_test.h"

#include "service/options/args.h"

TEST(messages_about_an_option_have_the_commands_name)
{
	static const struct {
		const char *message, *written;
	} cases[] = {
		{ "interfaces: no 'eth9'", "-i: no 'eth9'" },
		{ "rtt: not of IPv4", "--rtt: not of IPv4" },
		{ "command: too long", "--comm: too long" },
		/* An option of the configuration alone keeps its name. */
		{ "filter: syntax error", "filter: syntax error" },
		{ "cannot load programs", "cannot load programs" },
		/* Only the colon ends a name. */
		{ "interfaces of eth9", "interfaces of eth9" },
		{ "rtts: 2", "rtts: 2" },
		{ "interface", "interface" },
	};
	char text[100];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		option_name_write(cases[i].message, text, sizeof(text));
		assert_string_equal(text, cases[i].written);
	}
}

TEST(an_option_has_its_key_of_the_configuration)
{
	const struct option_name *option;
	const char *rest;

	option = option_name_of("max_flows: too many", &rest);
	assert_non_null(option);
	assert_string_equal(option->section, "limits");
	assert_string_equal(option->key, "max_flows");
	assert_string_equal(rest, " too many");
	assert_null(option_name_of("no option", &rest));
}
