// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/outage.h"
#include "lib_test.h"

struct lines {
	unsigned int n;
	int level; /* of the last one */
	char last[NETOBS_ERROR_MAX];
};

static void take_line(int level, const char *message, void *user)
{
	struct lines *lines = user;

	lines->n++;
	lines->level = level;
	snprintf(lines->last, sizeof(lines->last), "%s", message);
}

static void log_away(struct outage *outage, const struct log *log,
		     const char *reason)
{
	outage_log(outage, log, NETOBS_LOG_ERROR, reason, "away: %s", reason);
}

TEST(each_reason_is_logged_once)
{
	struct lines lines = { 0 };
	struct log log = { .write = take_line, .user = &lines };
	struct outage outage = { 0 };

	assert_false(outage_is_on(&outage));
	for (int i = 0; i < 3; i++) {
		log_away(&outage, &log, "refused");
		log_away(&outage, &log, "timed out");
	}
	assert_int_equal(lines.n, 2);
	assert_int_equal(lines.level, NETOBS_LOG_ERROR);
	assert_string_equal(lines.last, "away: timed out");
	assert_true(outage_is_on(&outage));
}

TEST(number_of_lines_is_bounded)
{
	struct lines lines = { 0 };
	struct log log = { .write = take_line, .user = &lines };
	struct outage outage = { 0 };
	char reason[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(reason, sizeof(reason), "%d", i);
		log_away(&outage, &log, reason);
	}
	assert_int_equal(lines.n, OUTAGE_REASONS);
}

TEST(end_is_logged_once_with_its_length)
{
	struct lines lines = { 0 };
	struct log log = { .write = take_line, .user = &lines };
	struct outage outage = { 0 };

	outage_end(&outage, &log, NETOBS_LOG_INFO, "back");
	assert_int_equal(lines.n, 0);
	log_away(&outage, &log, "refused");
	outage.began_ms -= 90500;
	outage_end(&outage, &log, NETOBS_LOG_INFO, "%s is back", "it");
	outage_end(&outage, &log, NETOBS_LOG_INFO, "%s is back", "it");
	assert_int_equal(lines.n, 2);
	assert_int_equal(lines.level, NETOBS_LOG_INFO);
	assert_non_null(strstr(lines.last, "it is back (outage of 90."));
	log_away(&outage, &log, "refused");
	assert_int_equal(lines.n, 3);
}

TEST(file_has_one_line_for_all_errors)
{
	struct lines lines = { 0 };
	struct log log = { .write = take_line, .user = &lines };
	struct outage outage = { 0 };

	outage_note(&outage, &log, "x.json", 0);
	outage_note(&outage, &log, "x.json", -ENOSPC);
	outage_note(&outage, &log, "x.json", -EIO);
	assert_int_equal(lines.n, 1);
	assert_string_equal(
		lines.last,
		"cannot write to x.json: No space left on device; trying again");
	outage_note(&outage, &log, "x.json", 0);
	assert_int_equal(lines.n, 2);
	assert_int_equal(lines.level, NETOBS_LOG_WARNING);
	assert_non_null(strstr(lines.last, "x.json can be written to again ("));
}
