/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include "json.h"
#include "util.h"

static void decimals_have_all_their_digits(void **state)
{
	static const struct {
		int64_t value;
		unsigned int decimals;
		const char *text;
	} cases[] = {
		{ 0, 0, "0" },
		{ 0, 2, "0.00" },
		{ 7, 2, "0.07" },
		{ 1234, 2, "12.34" },
		{ -5, 1, "-0.5" },
		{ -1234, 0, "-1234" },
		{ INT64_MIN, 1, "-922337203685477580.8" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];
		struct json json;

		json_begin(&json, text, sizeof(text));
		json_decimal(&json, cases[i].value, cases[i].decimals);
		assert_true(json_end(&json) > 0);
		assert_string_equal(text, cases[i].text);
	}
}

static void decimals_are_separated_like_other_values(void **state)
{
	char text[64];
	struct json json;

	(void)state;
	json_begin(&json, text, sizeof(text));
	json_open(&json, '[');
	json_decimal(&json, 15, 1);
	json_decimal(&json, -15, 1);
	json_u64(&json, 2);
	json_close(&json, ']');
	assert_true(json_end(&json) > 0);
	assert_string_equal(text, "[1.5,-1.5,2]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals_have_all_their_digits),
		cmocka_unit_test(decimals_are_separated_like_other_values),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
