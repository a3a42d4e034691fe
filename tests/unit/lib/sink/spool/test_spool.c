// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records wait, in memory and on disk; each comes out, or is counted. */
#include "lib_test.h"
#include "lib_spool.h"

static void each_kind(struct spool_fixture *f, const struct spool_options *limits,
		      void (*test)(struct spool_fixture *f))
{
	f->options.max_bytes = limits->max_bytes ?: f->options.max_bytes;
	f->options.max_age_ms = limits->max_age_ms;
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		use_disk(f, on_disk);
		open_spool(f);
		test(f);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

/* A case in memory and on disk, with limits. */
#define KINDS_TEST(name, ...)                                                    \
	static void name##_in(struct spool_fixture *f);                          \
	SPOOL_TEST(name)                                                         \
	{                                                                        \
		each_kind(f, &(struct spool_options){ __VA_ARGS__ }, name##_in); \
	}                                                                        \
	static void name##_in(struct spool_fixture *f)

KINDS_TEST(records_come_back_in_order)
{
	enum { N = 20000 };
	struct spool_item item;
	uint64_t got = 0;

	for (uint64_t n = 0; n < N; n++) {
		assert_true(put(&f->spool, n, 0));
		if (n % 7 == 6) /* the reader is right behind at times */
			while (got < n && spool_read(&f->spool, &item))
				assert_is_record(&item, got++);
		if (n % 1000 == 999)
			spool_ack(&f->spool, item.end);
	}
	get_all(&f->spool, got, N, &item);
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end);
	assert_int_equal(spool_pending(&f->spool).seq, 0);
	assert_int_equal(f->spool.delivered.seq, N);
}

KINDS_TEST(rewinding_brings_back_what_is_not_acknowledged)
{
	struct spool_item first, item;

	put_all(&f->spool, 0, 9000);
	for (uint64_t acked = 0; acked < 9000; acked += 1234) {
		get_all(&f->spool, acked, acked + 1, &first);
		get_all(&f->spool, acked + 1, 9000, &item);
		if (acked)
			spool_ack(&f->spool, first.end);
		spool_rewind(&f->spool);
		get_all(&f->spool, acked ? acked + 1 : 0, 9000, &item);
		spool_rewind(&f->spool);
		get_all(&f->spool, acked ? acked + 1 : 0,
			acked + 1234 < 9000 ? acked + 1234 : 9000, &item);
		spool_ack(&f->spool, item.end);
	}
	spool_rewind(&f->spool);
	assert_false(spool_read(&f->spool, &item));
	put_all(&f->spool, 9000, 9010);
	get_all(&f->spool, 9000, 9010, &item);
}

KINDS_TEST(what_is_refused_counts_as_dropped)
{
	struct spool_item item;

	put_all(&f->spool, 0, 100);
	get_all(&f->spool, 0, 10, &item);
	spool_ack(&f->spool, item.end);
	get_all(&f->spool, 10, 12, &item);
	spool_discard(&f->spool, item.end, SPOOL_REFUSED);
	get_all(&f->spool, 12, 100, &item);
	spool_ack(&f->spool, item.end);
	assert_int_equal(f->spool.delivered.seq, 98);
	assert_int_equal(f->spool.dropped[SPOOL_REFUSED].seq, 2);
	assert_int_equal(f->spool.dropped[SPOOL_REFUSED].packets,
			 10 % 5 + 11 % 5);
}

KINDS_TEST(full_spool_drops_the_oldest, .max_bytes = 4 << 20)
{
	struct spool_item item;
	uint64_t n = 0, dropped;

	while (!f->spool.dropped[SPOOL_FULL].seq)
		assert_true(put(&f->spool, n++, 0));
	assert_true(f->spool.size <= f->options.max_bytes);
	assert_true(f->spool.size > f->options.max_bytes / 2);
	dropped = f->spool.dropped[SPOOL_FULL].seq;
	get_all(&f->spool, dropped, n, &item);
	assert_identity(&f->spool);
	/* What was read makes room as well, but may still be acknowledged. */
	while (spool_pending(&f->spool).seq && f->spool.acked.seq <= item.end.seq)
		put(&f->spool, n++, 0);
	spool_ack(&f->spool, item.end);
	assert_int_equal(f->spool.delivered.seq, item.end.seq - dropped);
}

KINDS_TEST(old_records_are_dropped, .max_age_ms = 60000)
{
	struct spool_item item;

	for (uint64_t n = 0; n < 100; n++)
		assert_true(put(&f->spool, n, (int64_t)n * 1000));
	spool_expire(&f->spool, 99000);
	assert_in_range(spool_pending(&f->spool).seq, 60, 60 + 9);
	assert_int_equal(spool_pending(&f->spool).seq +
				 f->spool.dropped[SPOOL_TOO_OLD].seq,
			 100);
	assert_true(spool_read(&f->spool, &item));
	spool_expire(&f->spool, 1000000);
	assert_int_equal(spool_pending(&f->spool).seq, 1); /* the one read */
	spool_ack(&f->spool, item.end);
	assert_int_equal(spool_pending(&f->spool).seq, 0);
	assert_false(spool_read(&f->spool, &item));
}

/* ---- What a full spool drops while its reader has some of it in hand --------------- */

enum { MANY = 20000 }; /* more than fits */

/* The reader gets @n of @all records. @return the position behind the last one */
static struct position take_in_hand(struct spool_fixture *f, uint64_t n,
				    uint64_t all)
{
	struct spool_item item;

	f->options.max_bytes = 4 << 20;
	open_spool(f);
	put_all(&f->spool, 0, all);
	get_all(&f->spool, 0, n, &item);
	return item.end;
}

/* The rest comes, and everything was either delivered or dropped. */
static void finish(struct spool *spool)
{
	struct spool_item item;

	while (spool_read(spool, &item))
		spool_ack(spool, item.end);
	assert_int_equal(spool_pending(spool).seq, 0);
	assert_int_equal(spool->delivered.seq + spool->dropped[SPOOL_FULL].seq,
			 MANY);
	assert_identity(spool);
	spool_close(spool);
}

SPOOL_TEST(in_hand_and_delivered_is_not_dropped)
{
	struct position some = take_in_hand(f, 10, 100);
	struct spool_item last, item;

	get_all(&f->spool, 10, 40, &last);
	put_all(&f->spool, 100, MANY);
	assert_true(f->spool.size <= f->options.max_bytes);
	assert_identity(&f->spool);
	/* No record is read beyond those with an unknown outcome. */
	assert_false(spool_read(&f->spool, &item));

	spool_ack(&f->spool, some);
	assert_int_equal(f->spool.delivered.seq, 10);
	assert_identity(&f->spool);
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, last.end);
	spool_ack(&f->spool, some); /* going back is ignored */
	assert_int_equal(f->spool.delivered.seq, 40);
	assert_int_equal(f->spool.delivered.bytes, 3 * 39 * 40 / 2);
	assert_identity(&f->spool);
	finish(&f->spool);
}

/* More than a segment: the unacknowledged records span two segments. */
SPOOL_TEST(in_hand_over_several_segments)
{
	struct position end = take_in_hand(f, 5000, 7500);

	put_all(&f->spool, 7500, 11000);
	assert_true(f->spool.acked.seq > 0 && f->spool.acked.seq < 5000);
	assert_int_equal(f->spool.dropped[SPOOL_FULL].seq, 0);
	assert_int_equal(spool_pending(&f->spool).seq, 11000);
	spool_ack(&f->spool, end);
	assert_int_equal(f->spool.delivered.seq, 5000);
	put_all(&f->spool, 11000, MANY);
	finish(&f->spool);
}

SPOOL_TEST(in_hand_and_wanted_again_is_dropped)
{
	struct position some = take_in_hand(f, 10, 100);
	struct spool_item item;
	uint64_t dropped;

	get_all(&f->spool, 10, 40, &item);
	put_all(&f->spool, 100, MANY);
	spool_ack(&f->spool, some);
	dropped = f->spool.dropped[SPOOL_FULL].seq;
	spool_rewind(&f->spool);
	assert_int_equal(f->spool.dropped[SPOOL_FULL].seq, dropped + 30);
	assert_identity(&f->spool);
	finish(&f->spool);
}

SPOOL_TEST(in_hand_and_refused_counts_once)
{
	struct position end = take_in_hand(f, 40, 100);

	put_all(&f->spool, 100, MANY);
	spool_discard(&f->spool, end, SPOOL_REFUSED);
	assert_int_equal(f->spool.dropped[SPOOL_REFUSED].seq, 40);
	assert_identity(&f->spool);
	spool_close(&f->spool);
}
