// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a full spool drops while its reader has some of it in hand. */
#include "lib_test.h"

#include "sink/spool/spool.h"

#include <string.h>

enum { RECORD = 1000, MANY = 20000 }; /* more than fits */

static const struct log nowhere;

static const struct spool_options options = { .max_bytes = 4 << 20,
					      .log = &nowhere };

static void put_all(struct spool *spool, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		const struct position own = { 1, 2, n };
		char *record = spool_reserve(spool, RECORD, own, 0);

		assert_non_null(record);
		memset(record, 0, RECORD);
		memcpy(record, &n, sizeof(n));
		spool_commit(spool, RECORD);
	}
}

/* The position behind the last of @count records from @first. */
static struct position get_all(struct spool *spool, uint64_t first, uint64_t count)
{
	struct spool_item item = { 0 };

	for (uint64_t n = first; n < first + count; n++) {
		assert_true(spool_read(spool, &item));
		assert_memory_equal(item.record, &n, sizeof(n));
	}
	return item.end;
}

static void assert_identity(const struct spool *spool)
{
	struct position out =
		position_add(spool->delivered, spool_pending(spool));

	for (int i = 0; i < SPOOL_DROPS; i++)
		out = position_add(out, spool->dropped[i]);
	assert_int_equal(spool->accepted.seq, out.seq);
	assert_int_equal(spool->accepted.packets, out.packets);
	assert_int_equal(spool->accepted.bytes, out.bytes);
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

TEST(in_hand_and_delivered_is_not_dropped)
{
	struct spool spool;
	struct spool_item item;
	struct position some, end;

	assert_int_equal(spool_open(&spool, &options), 0);
	put_all(&spool, 0, 100);
	some = get_all(&spool, 0, 10);
	end = get_all(&spool, 10, 30);
	put_all(&spool, 100, MANY);
	assert_true(spool.size <= options.max_bytes);
	assert_identity(&spool);
	/* No record is read beyond those with an unknown outcome. */
	assert_false(spool_read(&spool, &item));

	spool_ack(&spool, some);
	assert_int_equal(spool.delivered.seq, 10);
	assert_identity(&spool);
	assert_false(spool_read(&spool, &item));
	spool_ack(&spool, end);
	spool_ack(&spool, some); /* going back is ignored */
	assert_int_equal(spool.delivered.seq, 40);
	assert_int_equal(spool.delivered.bytes, 39 * 40 / 2);
	assert_identity(&spool);
	finish(&spool);
}

/* More than a segment: the unacknowledged records span two segments. */
TEST(in_hand_over_several_segments)
{
	struct spool spool;
	struct position end;

	assert_int_equal(spool_open(&spool, &options), 0);
	put_all(&spool, 0, 3000);
	end = get_all(&spool, 0, 2000);
	put_all(&spool, 3000, 4500);
	assert_true(spool.acked.seq > 0 && spool.acked.seq < 2000);
	assert_int_equal(spool.dropped[SPOOL_FULL].seq, 0);
	assert_int_equal(spool_pending(&spool).seq, 4500);
	spool_ack(&spool, end);
	assert_int_equal(spool.delivered.seq, 2000);
	put_all(&spool, 4500, MANY);
	finish(&spool);
}

TEST(in_hand_and_wanted_again_is_dropped)
{
	struct spool spool;
	struct position some;
	uint64_t dropped;

	assert_int_equal(spool_open(&spool, &options), 0);
	put_all(&spool, 0, 100);
	some = get_all(&spool, 0, 10);
	get_all(&spool, 10, 30);
	put_all(&spool, 100, MANY);
	spool_ack(&spool, some);
	dropped = spool.dropped[SPOOL_FULL].seq;
	spool_rewind(&spool);
	assert_int_equal(spool.dropped[SPOOL_FULL].seq, dropped + 30);
	assert_identity(&spool);
	finish(&spool);
}

TEST(in_hand_and_refused_counts_once)
{
	struct spool spool;
	struct position end;

	assert_int_equal(spool_open(&spool, &options), 0);
	put_all(&spool, 0, 100);
	end = get_all(&spool, 0, 40);
	put_all(&spool, 100, MANY);
	spool_discard(&spool, end, SPOOL_REFUSED);
	assert_int_equal(spool.dropped[SPOOL_REFUSED].seq, 40);
	assert_identity(&spool);
	spool_close(&spool);
}
