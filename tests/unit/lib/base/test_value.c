// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/options.h"
#include "lib_test.h"

TEST(durations_are_milliseconds_rounded_up)
{
	static const struct {
		const char *text;
		uint32_t ms;
	} cases[] = {
		{ "1", 1000 },
		{ "0.02", 20 },
		{ ".5", 500 },
		{ "5.", 5000 },
		{ "0.001", 1 },
		{ "0.0001", 1 },
		{ "1.0000", 1000 },
		{ "1.0005", 1001 },
		{ "2147483", 2147483000 },
		{ "5s", 5000 },
		{ "250ms", 250 },
		{ "0.5ms", 1 },
		{ "5m", 300000 },
		{ "1.5h", 5400000 },
		{ "24d", 2073600000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ms = 0;

		assert_int_equal(value_parse(VALUE_DURATION, cases[i].text, 1,
					     INT32_MAX, &ms),
				 0);
		assert_int_equal(ms, cases[i].ms);
	}
}

TEST(wrong_values_are_refused)
{
	static const struct {
		enum value_kind kind;
		const char *text;
		int ret;
	} cases[] = {
		{ VALUE_DURATION, "", -EINVAL },
		{ VALUE_DURATION, ".", -EINVAL },
		{ VALUE_DURATION, "-1", -EINVAL },
		{ VALUE_DURATION, " 1", -EINVAL },
		{ VALUE_DURATION, "1 s", -EINVAL },
		{ VALUE_DURATION, "1w", -EINVAL },
		{ VALUE_DURATION, "0", -ERANGE },
		{ VALUE_DURATION, "0.1", -ERANGE },
		{ VALUE_DURATION, "1.5d", -ERANGE },
		{ VALUE_DURATION, "213503982335d", -ERANGE },
		{ VALUE_DURATION, "99999999999999999999999", -ERANGE },
		{ VALUE_NUMBER, "", -EINVAL },
		{ VALUE_NUMBER, "200.5", -EINVAL },
		{ VALUE_NUMBER, "200K", -EINVAL },
		{ VALUE_NUMBER, "199", -ERANGE },
		{ VALUE_NUMBER, "100000001", -ERANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = 7;

		assert_int_equal(value_parse(cases[i].kind, cases[i].text, 200,
					     100000000, &value),
				 cases[i].ret);
		assert_int_equal(value, 7);
	}
}

TEST(values_are_written_in_their_largest_unit)
{
	static const struct {
		enum value_kind kind;
		uint64_t value;
		const char *text;
	} cases[] = {
		{ VALUE_NUMBER, 1024, "1024" },
		{ VALUE_BYTES, 0, "0" },
		{ VALUE_BYTES, 1500, "1500" },
		{ VALUE_BYTES, 64 << 20, "64M" },
		{ VALUE_DURATION, 20, "20ms" },
		{ VALUE_DURATION, 1000, "1s" },
		{ VALUE_DURATION, 90000, "90s" },
		{ VALUE_DURATION, 86400000, "1d" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[32];

		value_format(cases[i].kind, cases[i].value, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(choices_have_an_index)
{
	static const char *const choices[] = { "slow", "fast", NULL };

	assert_int_equal(value_choice(choices, "fast"), 1);
	assert_int_equal(value_choice(choices, ""), -EINVAL);
	assert_int_equal(value_choice(choices, "fas"), -EINVAL);
}

TEST(bytes_have_units)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t bytes;
	} cases[] = {
		{ "1", 0, 1 },
		{ "4096", 0, 4096 },
		{ "3K", 0, 3 << 10 },
		{ "64M", 0, 64 << 20 },
		{ "2G", 0, 2ULL << 30 },
		{ "17179869183G", 0, 17179869183ULL << 30 },
		{ "17179869184G", -ERANGE, 7 },
		{ "18446744073709551616", -ERANGE, 7 },
		{ "0", -ERANGE, 7 },
		{ "0M", -ERANGE, 7 },
		{ "", -EINVAL, 7 },
		{ "M", -EINVAL, 7 },
		{ "1m", -EINVAL, 7 },
		{ "1MB", -EINVAL, 7 },
		{ "-1", -EINVAL, 7 },
		{ "1.5G", -EINVAL, 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 7;

		assert_int_equal(value_parse(VALUE_BYTES, cases[i].text, 1,
					     UINT64_MAX, &bytes),
				 cases[i].ret);
		assert_int_equal(bytes, cases[i].bytes);
	}
}
