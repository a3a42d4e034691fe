// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What users write behind -o, rightly and wrongly. */
#include "lib_test.h"

#include "base/spec.h"

/* The last line that was logged. */
static char logged[512];

static void keep_line(int level, const char *message, void *user)
{
	(void)level;
	(void)user;
	snprintf(logged, sizeof(logged), "%s", message);
}

static const struct log log_to_line = { .write = keep_line };

static void parse(struct spec *spec, const char *text)
{
	logged[0] = '\0';
	assert_int_equal(spec_parse(spec, text, &log_to_line), 0);
}

TEST(kind_and_target)
{
	static const struct {
		const char *text, *kind, *target;
	} cases[] = {
		{ "json", "json", NULL },
		{ "json:/var/log/flows", "json", "/var/log/flows" },
		{ "json:a:b", "json", "a:b" },
		{ "json:100%25%3f", "json", "100%?" },
		{ "kafka://b1:9092,b2/topic?key=flow", "kafka",
		  "//b1:9092,b2/topic" },
		{ "ipfix:udp://[::1]:4739?mtu=1400", "ipfix", "udp://[::1]:4739" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec spec;

		parse(&spec, cases[i].text);
		assert_string_equal(spec.kind, cases[i].kind);
		if (cases[i].target)
			assert_string_equal(spec.target, cases[i].target);
		else
			assert_null(spec.target);
		spec_free(&spec);
	}
}

TEST(values_of_each_type)
{
	static const char *const colours[] = { "red", "green", NULL };
	struct spec spec;
	size_t position = 0;

	parse(&spec,
	      "x?name=a%26b%3dc&n=42&size=64K&big=2G&t=5&short=20ms&long=2h&c=green&rd.a=1&rd.b=2&empty=");
	assert_string_equal(spec_string(&spec, "name", NULL), "a&b=c");
	assert_string_equal(spec_string(&spec, "empty", "x"), "");
	assert_string_equal(spec_string(&spec, "absent", "x"), "x");
	assert_int_equal(spec_number(&spec, "n", 42, 42, 0), 42);
	assert_int_equal(spec_number(&spec, "absent", 0, 9, 7), 7);
	assert_int_equal(spec_size(&spec, "size", 0, 1 << 20, 0), 64 << 10);
	assert_int_equal(spec_size(&spec, "big", 0, UINT64_MAX, 0), 2ULL << 30);
	assert_int_equal(spec_duration_ms(&spec, "t", 0, 9999, 0), 5000);
	assert_int_equal(spec_duration_ms(&spec, "short", 0, 9999, 0), 20);
	assert_int_equal(spec_duration_ms(&spec, "long", 0, 86400000, 0),
			 7200000);
	assert_int_equal(spec_choice(&spec, "c", colours, 0), 1);
	assert_int_equal(spec_choice(&spec, "absent", colours, -1), -1);
	assert_string_equal(spec_next(&spec, "rd.", &position)->name, "rd.a");
	assert_string_equal(spec_next(&spec, "rd.", &position)->value, "2");
	assert_null(spec_next(&spec, "rd.", &position));
	assert_int_equal(spec_finish(&spec), 0);
	assert_string_equal(logged, "");
	spec_free(&spec);
}

TEST(wrong_specs_are_refused_with_the_reason)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "does not start with the kind" },
		{ ":x", "does not start with the kind" },
		{ "json:", "nothing follows" },
		{ "json:?a=b", "nothing follows" },
		{ "json:%", "hexadecimal" },
		{ "json:%4", "hexadecimal" },
		{ "json:%00", "hexadecimal" },
		{ "json:%zz", "hexadecimal" },
		{ "json?", "'' is not NAME=VALUE" },
		{ "json?a", "'a' is not NAME=VALUE" },
		{ "json?=a", "'=a' is not NAME=VALUE" },
		{ "json?a=1&&b=2", "'' is not NAME=VALUE" },
		{ "json?a=1&a=2", "a is given twice" },
		{ "json?a=%g0", "option a: %" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec spec;

		logged[0] = '\0';
		assert_int_equal(spec_parse(&spec, cases[i].text, &log_to_line),
				 -EINVAL);
		if (!strstr(logged, cases[i].words))
			fail_msg("%s: %s", cases[i].text, logged);
		assert_null(spec.text);
	}
}

/* Ask for n=, size=, time= and choice=, whatever is given. */
static int ask(struct spec *spec)
{
	static const char *const choices[] = { "on", "off", NULL };

	assert_int_equal(spec_number(spec, "n", 576, 65535, 1400), 1400);
	assert_int_equal(spec_size(spec, "size", 1 << 20, 1 << 30, 1 << 21),
			 1 << 21);
	assert_int_equal(spec_duration_ms(spec, "time", 10, 60000, 500), 500);
	assert_int_equal(spec_choice(spec, "choice", choices, 1), 1);
	return spec_finish(spec);
}

TEST(wrong_values_are_named_with_what_would_be_right)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "x?n=200", "x: option n: '200' is not from 576 to 65535" },
		{ "x?n=", "'' is not from" },
		{ "x?n=-1", "'-1' is not from" },
		{ "x?n=1400K", "'1400K' is not from" },
		{ "x?n=99999999999999999999", "is not from 576 to 65535" },
		{ "x?size=1", "'1' is not from 1M to 1G" },
		{ "x?size=2T", "'2T' is not from 1M to 1G" },
		{ "x?size=18446744073709551615G", "is not from 1M to 1G" },
		{ "x?time=2m", "'2m' is not from 10ms to 1m" },
		{ "x?choice=maybe", "'maybe' is not on|off" },
		{ "x?choice=%0a%1b[31m", "'??[31m' is not on|off" },
		{ "x?colour=red", "unknown option 'colour'" },
		{ "x?n=1&colour=red", "option n: '1' is not" }, /* the first */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec spec;

		parse(&spec, cases[i].text);
		assert_int_equal(ask(&spec), -EINVAL);
		if (!strstr(logged, cases[i].words))
			fail_msg("%s: %s", cases[i].text, logged);
		spec_free(&spec);
	}
}

TEST(options_are_limited)
{
	char text[2048] = "x?o0=1";
	struct spec spec;

	for (int i = 1; i < SPEC_OPTIONS_MAX; i++)
		sprintf(text + strlen(text), "&o%d=1", i);
	parse(&spec, text);
	assert_int_equal(spec.n_options, SPEC_OPTIONS_MAX);
	spec_free(&spec);
	strcat(text, "&more=1");
	assert_int_equal(spec_parse(&spec, text, &log_to_line), -EINVAL);
	assert_non_null(strstr(logged, "more than 64 options"));
}
