// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/outage.h"
#include "lib_test.h"
#include "lib_witness.h"

static void log_away(struct outage *outage, const struct log *log,
		     const char *reason)
{
	outage_log(outage, log, NETOBS_LOG_ERROR, reason, "away: %s", reason);
}

TEST(each_reason_is_logged_once)
{
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct outage outage = { 0 };

	assert_false(outage_is_on(&outage));
	for (int i = 0; i < 3; i++) {
		log_away(&outage, &log, "refused");
		log_away(&outage, &log, "timed out");
	}
	assert_int_equal(witness.n_lines, 2);
	assert_int_equal(witness.errors, 2);
	assert_string_equal(witness_last(&witness), "away: timed out\n");
	assert_true(outage_is_on(&outage));
}

TEST(number_of_lines_is_bounded)
{
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct outage outage = { 0 };
	char reason[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(reason, sizeof(reason), "%d", i);
		log_away(&outage, &log, reason);
	}
	assert_int_equal(witness.n_lines, OUTAGE_REASONS);
}

TEST(end_is_logged_once_with_its_length)
{
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct outage outage = { 0 };

	outage_end(&outage, &log, NETOBS_LOG_INFO, "back");
	assert_int_equal(witness.n_lines, 0);
	log_away(&outage, &log, "refused");
	outage.began_ms -= 90500;
	outage_end(&outage, &log, NETOBS_LOG_INFO, "%s is back", "it");
	outage_end(&outage, &log, NETOBS_LOG_INFO, "%s is back", "it");
	assert_int_equal(witness.n_lines, 2);
	assert_int_equal(witness.errors, 1);
	assert_int_equal(witness.warnings, 0);
	assert_non_null(
		strstr(witness_last(&witness), "it is back (outage of 90."));
	log_away(&outage, &log, "refused");
	assert_int_equal(witness.n_lines, 3);
}

TEST(file_has_one_line_for_all_errors)
{
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct outage outage = { 0 };

	outage_note(&outage, &log, "x.json", 0);
	outage_note(&outage, &log, "x.json", -ENOSPC);
	outage_note(&outage, &log, "x.json", -EIO);
	assert_int_equal(witness.n_lines, 1);
	assert_string_equal(
		witness_last(&witness),
		"cannot write to x.json: No space left on device; trying again\n");
	outage_note(&outage, &log, "x.json", 0);
	assert_int_equal(witness.n_lines, 2);
	assert_int_equal(witness.warnings, 2);
	assert_non_null(strstr(witness_last(&witness),
			       "x.json can be written to again ("));
}
