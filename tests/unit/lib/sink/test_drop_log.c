// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What is logged of records that are dropped, and when. */
#include "lib_test.h"
#include "lib_witness.h"

#include "sink/sink.h"

struct fixture {
	struct drop_log drops;
	struct log log;
	struct spool spool;
	struct witness witness;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ .log = witness_log(&f->witness) };
	f->spool.tail.seq = 100; /* some are pending */
}

static bool note_at(struct fixture *f, int64_t now_ms)
{
	return drop_log_note(&f->drops, &f->log, "json:unix:/x", &f->spool,
			     now_ms);
}

static void assert_logged(struct fixture *f, unsigned int lines, const char *words)
{
	assert_int_equal(f->witness.n_lines, lines);
	assert_int_equal(f->witness.warnings, lines);
	if (!strstr(witness_last(&f->witness), words))
		fail_msg("%s", f->witness.log);
}

/* Twice a second; @n more are dropped each time. */
static void drop_for(struct fixture *f, int64_t *now_ms, int seconds, uint64_t n)
{
	for (int i = 0; i < 2 * seconds; i++) {
		f->spool.dropped[SPOOL_FULL].seq += n;
		*now_ms += 500;
		note_at(f, *now_ms);
	}
}

TEST(drops_are_logged_each_minute_until_they_end)
{
	struct fixture f;
	int64_t now_ms = 1000;

	set_up(&f);
	assert_false(note_at(&f, now_ms));
	drop_for(&f, &now_ms, 1, 10);
	assert_logged(
		&f, 1,
		"json:unix:/x: records are dropped: the spool is full (spool_full); 10 so far");
	drop_for(&f, &now_ms, 58, 10);
	assert_int_equal(f.witness.n_lines, 1);
	drop_for(&f, &now_ms, 3, 10);
	assert_logged(&f, 2, "1200 more records were dropped in the last minute");
	f.spool.acked = f.spool.tail; /* all is delivered */
	assert_false(note_at(&f, now_ms + 500));
	assert_logged(&f, 3, "no more records are dropped; 1240 were");
	drop_for(&f, &now_ms, 10, 0);
	assert_int_equal(f.witness.n_lines, 3);
	f.spool.acked.seq = 0;
	drop_for(&f, &now_ms, 1, 1);
	assert_logged(&f, 4, "; 1 so far");
}

TEST(quiet_minute_is_the_end)
{
	struct fixture f;
	int64_t now_ms = 1000;

	set_up(&f);
	drop_for(&f, &now_ms, 1, 10);
	drop_for(&f, &now_ms, 59, 0);
	assert_true(f.witness.n_lines == 1 || f.witness.n_lines == 2);
	drop_for(&f, &now_ms, 65, 0);
	assert_false(note_at(&f, now_ms));
	assert_logged(&f, f.witness.n_lines,
		      "no more records are dropped; 20 were");
}

TEST(each_reason_is_logged)
{
	struct fixture f;

	set_up(&f);
	for (int i = 0; i < SPOOL_DROPS; i++) {
		f.spool.dropped[i].seq = (uint64_t)i + 1;
		assert_true(note_at(&f, 1000));
		assert_int_equal(f.witness.n_lines, i + 1);
	}
	assert_logged(&f, SPOOL_DROPS, "(unsupported)");
}

/* A name that has a line break in it makes no line of its own. */
TEST(line_is_one_line)
{
	struct fixture f;

	set_up(&f);
	f.spool.dropped[SPOOL_FULL].seq = 1;
	drop_log_note(&f.drops, &f.log, "json:a\nb\033[2J", &f.spool, 1000);
	assert_logged(&f, 1, "json:a?b?[2J: records");
}
