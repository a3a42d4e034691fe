// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/grpc/grpc.h"

#include "lib_test.h"

TEST(number_is_read_or_unknown)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{ "0", 0 },  { "14", 14 },  { "999", 999 },
		{ "", 2 },   { "1234", 2 }, { "-1", 2 },
		{ " 0", 2 }, { "0x", 2 },   { "\xff", 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(status_parse(cases[i].text,
					      strlen(cases[i].text)),
				 cases[i].status);
}

TEST(status_has_a_name)
{
	assert_string_equal(status_name(0), "OK");
	assert_string_equal(status_name(16), "UNAUTHENTICATED");
	assert_string_equal(status_name(17), "an unknown status");
	assert_string_equal(status_name(-1), "an unknown status");
}

/* What servers in five languages say of a message that is too large, and of else. */
TEST(size_is_told_from_quota)
{
	static const struct {
		int status;
		const char *message;
		enum status_action action;
	} cases[] = {
		{ 8, "Received message larger than max (5 vs. 4)",
		  STATUS_TOO_BIG },
		{ 8, "grpc: received message larger than max (5 vs. 4)",
		  STATUS_TOO_BIG },
		{ 8, "gRPC message exceeds maximum size 4: 5", STATUS_TOO_BIG },
		{ 11, "Error, message length too large: found 5 bytes",
		  STATUS_TOO_BIG },
		{ 8, "", STATUS_LATER },
		{ 8, "quota of 5 per second", STATUS_LATER },
		{ 11, "", STATUS_REFUSED },
		{ 3, "larger than life", STATUS_REFUSED },
		{ 0, "", STATUS_ACCEPTED },
		{ 2, "", STATUS_LATER },
		{ 7, "", STATUS_LATER },
		{ 12, "", STATUS_LATER },
		{ 13, "", STATUS_LATER },
		{ 14, "", STATUS_LATER },
		{ 15, "", STATUS_LATER },
		{ 16, "", STATUS_LATER },
		{ 99, "", STATUS_LATER },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(status_action(cases[i].status, cases[i].message),
				 cases[i].action);
}

TEST(message_is_made_fit_for_a_log)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "plain", "plain" },
		{ "50%25 of%20it", "50% of it" },
		{ "%0aa line%0A", "?a line?" },
		{ "%", "%" },
		{ "%4", "%4" },
		{ "%zz", "%zz" },
		{ "\x1b[31m\xc3\xa9", "?[31m??" },
		{ "a very long message", "a very lon" },
	};
	char to[11];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		status_decode(cases[i].text, strlen(cases[i].text), to,
			      sizeof(to));
		assert_string_equal(to, cases[i].expected);
	}
}

#define DETAILS_3S                                                         \
	"CA4SBWxhdGVyGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRy" \
	"eUluZm8SBAoCCAM"
#define DETAILS_1500MS                                                     \
	"CA4SBWxhdGVyGjYKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRy" \
	"eUluZm8SCgoICAEQgMq17gE"
#define DETAILS_BEHIND                                                     \
	"CA4SBWxhdGVyGi8KKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5EZWJ1" \
	"Z0luZm8SAxIBeBowCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuUmV0" \
	"cnlJbmZvEgQKAggB"
#define DETAILS_YEAR                                                       \
	"CA4SBWxhdGVyGjMKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRy" \
	"eUluZm8SBwoFCIDnhA8"
#define DETAILS_NEGATIVE                                                   \
	"CA4SBWxhdGVyGjkKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRy" \
	"eUluZm8SDQoLCP///////////wE"

/* google.rpc.Status with a RetryInfo, as grpc-go and others send it. */
TEST(details_say_how_long_to_wait)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "", 0 },
		{ "!", 0 },
		{ "AAAA", 0 },
		/* 3 s; the same with padding; 1.5 s; 1 s behind another detail */
		{ DETAILS_3S, 3000 },
		{ DETAILS_3S "=", 3000 },
		{ DETAILS_1500MS, 1500 },
		{ DETAILS_BEHIND, 1000 },
		{ DETAILS_YEAR, 300 * 1000 },
		{ DETAILS_NEGATIVE, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(status_retry_ms(cases[i].text,
						 strlen(cases[i].text)),
				 cases[i].ms);
	/* Whatever is missing, it is not read. */
	for (size_t len = 0; len < strlen(DETAILS_BEHIND); len++) {
		char *copy = strndup(DETAILS_BEHIND, len);

		assert_true(status_retry_ms(copy, len) <= 1000);
		free(copy);
	}
}
