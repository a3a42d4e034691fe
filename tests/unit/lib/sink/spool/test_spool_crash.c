// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The host crashes after any operation on a spool's directory, and leaves any part of the data that
 * was not synced. The spool then has all records that it reported as durable and that are not
 * acknowledged, and none that were never written.
 */
#include "lib_crash.h"
#include "lib_test.h"
#include "lib_spool.h"

enum { STEPS = 45, SEGMENT = 4096, LIMIT = 48 << 10 };

/* The records that were reported as durable after so many operations. */
struct claim {
	size_t at;
	uint64_t durable, acked;
};

struct history {
	struct disk_log log;
	struct claim claims[STEPS + 2];
	size_t n;
	uint64_t tail;
};

static unsigned int states;
static char where[128]; /* the state that is looked at */

static void open_small(struct spool_fixture *f)
{
	open_spool(f);
	f->spool.capacity = SEGMENT;
}

/* ---- A life ---------------------------------------------------------------------- */

static void note(struct history *history, const struct spool *spool)
{
	struct claim claim = { history->log.n, spool->durable.seq,
			       spool->acked.seq };

	if (history->n) {
		const struct claim *last = &history->claims[history->n - 1];

		claim.durable = max_u64(claim.durable, last->durable);
		claim.acked = max_u64(claim.acked, last->acked);
	}
	history->tail = max_u64(history->tail, spool->tail.seq);
	history->claims[history->n++] = claim;
}

static void read_some(struct spool *spool, int n)
{
	struct spool_item item;
	bool is_any = false;

	while (n-- > 0 && spool_read(spool, &item))
		is_any = true;
	if (is_any)
		spool_ack(spool, item.end);
	if (rand() % 4 == 0)
		spool_rewind(spool);
}

static void step(struct spool_fixture *f, bool is_faulty)
{
	int what = rand() % 16;

	if (what == 0 && !is_faulty) {
		spool_close(&f->spool);
		open_small(f);
	} else if (what < 6) {
		read_some(&f->spool, rand() % 30);
	} else if (what < 11) {
		spool_sync(&f->spool);
	} else {
		for (int n = rand() % 24; n > 0; n--)
			put(&f->spool, f->spool.tail.seq, 0);
	}
}

/* With @fault, if any, from a third of it on, and for a third at most. */
static void live(struct spool_fixture *f, struct history *history,
		 const struct disk_fault *fault, unsigned int seed)
{
	use_disk(f, true);
	f->options.max_bytes = LIMIT;
	disk_record(&history->log);
	srand(seed);
	open_small(f);
	note(history, &f->spool);
	for (int i = 0; i < STEPS; i++) {
		if (fault && i == STEPS / 3)
			disk_fail(fault);
		if (fault && i == STEPS * 2 / 3)
			disk_heal();
		step(f, fault && i >= STEPS / 3 && i < STEPS * 2 / 3);
		note(history, &f->spool);
		assert_identity(&f->spool);
	}
	disk_heal();
	spool_close(&f->spool);
	disk_record(NULL);
	empty_dir(f->dir);
}

/* ---- And after it ---------------------------------------------------------------- */

/* All of [from, to) is there, and no other record has changed. */
static void check_contents(struct spool *spool, uint64_t from, uint64_t to,
			   uint64_t tail)
{
	struct spool_item item;
	uint64_t next = from;

	assert_true(spool->acked.seq <= from);
	while (spool_read(spool, &item)) {
		uint64_t seq = item.end.seq - 1;

		assert_true(seq < tail);
		assert_is_record(&item, seq);
		if (seq >= from && seq < to)
			assert_int_equal(seq, next++);
		spool_ack(spool, item.end);
	}
	if (from < to)
		assert_int_equal(next, to);
	assert_identity(spool);
	assert_int_equal(spool_pending(spool).seq, 0);
}

/* It goes on as if nothing had been. */
static void check_future(struct spool_fixture *f)
{
	uint64_t from = f->spool.tail.seq;
	struct spool_item item;

	for (int i = 0; i < 10; i++)
		assert_true(put(&f->spool, f->spool.tail.seq, 0));
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_int_equal(f->spool.durable.seq, from + 10);
	spool_close(&f->spool);
	open_spool(f);
	assert_int_equal(f->spool.acked.seq, from);
	get_all(&f->spool, from, from + 10, &item);
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end);
	assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq, 0);
	spool_close(&f->spool);
}

static struct claim claim_at(const struct history *history, size_t n)
{
	struct claim claim = { 0 };

	for (size_t i = 0; i < history->n; i++) {
		claim.acked = history->claims[i].acked;
		if (history->claims[i].at > n)
			break;
		claim.durable = history->claims[i].durable;
	}
	return claim;
}

static void check(struct spool_fixture *f, struct claim claim, uint64_t tail)
{
	states++;
	open_spool(f);
	check_contents(&f->spool, claim.acked, claim.durable, tail);
	check_future(f);
	empty_dir(f->dir);
}

/* A second crash, during the recovery from the first. */
static void crash_again(struct spool_fixture *f, struct claim claim, uint64_t tail)
{
	struct disk_log log = { 0 };

	disk_record(&log);
	disk_record_dir(f->dir);
	open_spool(f);
	spool_sync(&f->spool);
	spool_close(&f->spool);
	disk_record(NULL);
	empty_dir(f->dir);
	for (size_t n = log.start; n <= log.n; n++)
		for (int kind = 0; kind < CRASH_KINDS; kind++) {
			crash_make(&log, n, kind, (unsigned int)n, f->dir);
			check(f, claim, tail);
		}
	disk_log_free(&log);
}

static void crash_everywhere(struct spool_fixture *f,
			     const struct disk_fault *fault, unsigned int seed)
{
	struct history *history = calloc(1, sizeof(*history));

	live(f, history, fault, seed);
	for (size_t n = 0; n <= history->log.n; n++) {
		struct claim claim = claim_at(history, n);

		for (int kind = 0; kind < CRASH_KINDS; kind++) {
			unsigned int mix = seed * 100003 + (unsigned int)n * 101 +
					   (unsigned int)kind;

			snprintf(where, sizeof(where),
				 "life %u, call %d, after %zu of %zu: kind %d, mix %u",
				 seed, fault ? (int)fault->call : -1, n,
				 history->log.n, kind, mix);
			crash_make(&history->log, n, kind, mix, f->dir);
			if (mix % 97 == 0)
				crash_again(f, claim, history->tail);
			else
				check(f, claim, history->tail);
		}
	}
	disk_log_free(&history->log);
	free(history);
}

/* More crashes: NETOBS_TEST_CRASHES. */
static unsigned int effort(void)
{
	const char *text = getenv("NETOBS_TEST_CRASHES");

	return text ? (unsigned int)atoi(text) : 1;
}

static int tell_where(void **state)
{
	if (*where)
		print_message("the last state: %s\n", where);
	return spool_tear_down(state);
}

#define CASE(name) TEST_WITH(name, spool_set_up, tell_where)

/* ---- Tests ----------------------------------------------------------------------- */

CASE(every_crash_leaves_what_was_durable)
{
	states = 0;
	for (unsigned int seed = 1; seed <= 3 * effort(); seed++)
		crash_everywhere(*state, NULL, seed);
	print_message("%u states\n", states);
	*where = '\0';
}

static void after_faults(void **state, const struct disk_fault *faults, size_t n)
{
	states = 0;
	for (size_t i = 0; i < n; i++)
		for (unsigned int seed = 1; seed <= effort(); seed++)
			crash_everywhere(*state, &faults[i], seed);
	print_message("%u states\n", states);
	*where = '\0';
}

CASE(failed_syncs_make_nothing_durable)
{
	static const struct disk_fault faults[] = {
		{ DISK_SYNC, 0, 1, EIO, 0 },
		{ DISK_SYNC, 0, 3, ENOSPC, 0 },
		{ DISK_SYNC, 1, 1000, EIO, 0 },
		{ DISK_SYNC_DIR, 0, 1, EIO, 0 },
		{ DISK_SYNC_DIR, 1, 1000, EIO, 0 },
	};

	after_faults(state, faults, sizeof(faults) / sizeof(faults[0]));
}

CASE(failed_writes_and_names_cost_nothing_durable)
{
	static const struct disk_fault faults[] = {
		{ DISK_WRITE, 0, 1000, ENOSPC, 0 },
		{ DISK_WRITE, 1, 1, ENOSPC, 77 },
		{ DISK_WRITE, 0, 1000, EIO, 5 },
		{ DISK_OPEN, 0, 1000, EMFILE, 0 },
		{ DISK_RENAME, 0, 1000, EROFS, 0 },
		{ DISK_UNLINK, 0, 1000, EROFS, 0 },
	};

	after_faults(state, faults, sizeof(faults) / sizeof(faults[0]));
}
