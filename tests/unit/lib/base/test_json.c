/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include "base/json.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void numbers_are_separated_whatever_their_sign(void **state)
{
	char text[64];
	struct json json;

	(void)state;
	json_begin(&json, text, sizeof(text));
	json_open(&json, '[');
	json_i64(&json, 15);
	json_i64(&json, -15);
	json_i64(&json, INT64_MIN);
	json_u64(&json, 2);
	json_close(&json, ']');
	assert_true(json_end(&json) > 0);
	assert_string_equal(text, "[15,-15,-9223372036854775808,2]");
}

static void numbers_have_all_their_digits(void **state)
{
	char text[64], expected[64];
	uint64_t value = 0;

	(void)state;
	for (uint64_t power = 1; power;
	     power *= power < UINT64_MAX / 10 ? 10 : 0) {
		for (int i = -1; i <= 1; i++) {
			size_t len;

			value = power + (uint64_t)i;
			len = (size_t)snprintf(expected, sizeof(expected),
					       "%lu", value);
			/* Also where there is room for no more than that. */
			for (size_t room = len; room < len + 30; room++) {
				struct json json;

				json_begin(&json, text, room + 1);
				json_u64(&json, value);
				assert_int_equal(json_end(&json), len);
				assert_string_equal(text, expected);
				json_begin(&json, text, len);
				json_u64(&json, value);
				assert_int_equal(json_end(&json), -ENOBUFS);
			}
		}
	}
}

static void keys_fit_or_are_left_out(void **state)
{
	(void)state;
	for (size_t room = 0; room < 20; room++) {
		char *text = malloc(room + 1);
		struct json json;

		json_begin(&json, text, room + 1);
		json_open(&json, '{');
		json_key_u64(&json, "a", 1);
		json_key_u64(&json, "bc", 2);
		json_close(&json, '}');
		if (room < strlen("{\"a\":1,\"bc\":2}")) {
			assert_int_equal(json_end(&json), -ENOBUFS);
		} else {
			assert_true(json_end(&json) > 0);
			assert_string_equal(text, "{\"a\":1,\"bc\":2}");
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_separated_whatever_their_sign),
		cmocka_unit_test(numbers_have_all_their_digits),
		cmocka_unit_test(keys_fit_or_are_left_out),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
