// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a spool on disk makes of files that are not as it left them. */
#include "lib_test.h"
#include "lib_spool.h"

#include <sys/stat.h>

/* A directory with one segment of @n records; its path and content. */
static char *make_segment(struct spool_fixture *f, uint64_t n, char *path,
			  size_t *len)
{
	open_on_disk(f);
	put_all(&f->spool, 0, n);
	spool_close(&f->spool);
	assert_int_equal(count_files(f->dir, ".seg", path), 1);
	return read_file(path, len);
}

/* A directory with @n records in several segments. */
static void fill_segments(struct spool_fixture *f, uint64_t n)
{
	open_on_disk(f);
	f->spool.capacity = 100 << 10;
	put_all(&f->spool, 0, n);
	spool_close(&f->spool);
}

/* A crash may leave any prefix of the written data. */
SPOOL_TEST(every_prefix_of_a_file_gives_its_whole_records)
{
	char path[PATH_MAX], record[1024];
	struct spool_item item;
	uint64_t whole = 0;
	size_t len, at = sizeof(struct segment_head);
	char *bytes = make_segment(f, 12, path, &len);

	empty_dir(f->dir); /* where nothing is known to have been durable */
	for (size_t cut = 0; cut <= len; cut++) {
		write_file(path, bytes, cut);
		while (whole < 12 &&
		       at + segment_cost(make_record(whole, record)) <= cut)
			at += segment_cost(make_record(whole++, record));
		open_spool(f);
		assert_int_equal(count_files(f->dir, ".seg", NULL), whole > 0);
		assert_int_equal(f->spool.recovered.seq, whole);
		get_all(&f->spool, 0, whole, &item);
		assert_false(spool_read(&f->spool, &item));
		/* New records do not disturb the old ones. */
		assert_true(put(&f->spool, 77, 0));
		assert_true(spool_read(&f->spool, &item));
		assert_is_record(&item, 77);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
		/* And they are still there afterwards, behind the old ones. */
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, whole + 1);
		get_all(&f->spool, 0, whole, &item);
		assert_true(spool_read(&f->spool, &item));
		assert_is_record(&item, 77);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
	assert_int_equal(whole, 12);
	free(bytes);
}

/* ---- Files of other programs ------------------------------------------------------- */

static const char victim[] = "/dev/shm/netobs-victim";

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *path)
{
	write_file(victim, "precious", 8);
	assert_int_equal(symlink(victim, path), 0);
}

static void make_fifo(const char *path)
{
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void make_empty(const char *path)
{
	write_file(path, "", 0);
}

static void make_rubbish(const char *path)
{
	char bytes[5000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * i);
	write_file(path, bytes, sizeof(bytes));
}

static void make_huge(const char *path)
{
	if (access(path, F_OK))
		make_empty(path);
	assert_int_equal(truncate(path, 900LL << 30), 0);
}

static void make_others(const char *path)
{
	make_rubbish(path);
	assert_int_equal(chown(path, 65533, 65533), geteuid() ? -1 : 0);
}

static void assert_untouched(void)
{
	size_t len;
	char *bytes;

	if (access(victim, F_OK))
		return;
	bytes = read_file(victim, &len);
	assert_int_equal(len, 8);
	assert_memory_equal(bytes, "precious", 8);
	free(bytes);
	unlink(victim);
}

/* ---- Damage ------------------------------------------------------------------------ */

/* Reads the rest of @n records; each missing one counts as damaged. */
static uint64_t read_whole(struct spool *spool, uint64_t n)
{
	struct spool_item item;
	uint64_t got = 0;

	while (spool_read(spool, &item)) {
		assert_true(item.end.seq <= n);
		assert_is_record(&item, item.end.seq - 1);
		spool_ack(spool, item.end);
		got++;
	}
	assert_identity(spool);
	assert_int_equal(spool_pending(spool).seq, 0);
	assert_int_equal(got, spool->delivered.seq);
	assert_int_equal(got + spool->dropped[SPOOL_DAMAGED].seq, n);
	return got;
}

/* A bit that is wrong costs its record, and one in the segment's head none. */
SPOOL_TEST(damage_costs_the_record_that_it_is_in)
{
	char path[PATH_MAX], acked[PATH_MAX];
	struct spool_item item;
	size_t len, acked_len;
	char *bytes = make_segment(f, 8, path, &len), *progress;

	snprintf(acked, sizeof(acked), "%s/acked", f->dir);
	progress = read_file(acked, &acked_len);
	for (size_t at = 0; at < len; at++) {
		uint64_t got;

		empty_dir(f->dir);
		bytes[at] ^= 1 << at % 8;
		write_file(path, bytes, len);
		write_file(acked, progress, acked_len);
		bytes[at] ^= 1 << at % 8;
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, 8);
		got = read_whole(&f->spool, 8);
		assert_int_equal(got, at < sizeof(struct segment_head) ? 8 : 7);
		assert_true(put(&f->spool, 8, 0));
		get_all(&f->spool, 8, 9, &item);
		spool_close(&f->spool);
		assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
	}
	free(progress);
	free(bytes);
}

/* Several files, each damaged somewhere: the intact records are read, in order. */
SPOOL_TEST(random_damage_costs_what_it_hits)
{
	enum { RECORDS = 2000, ROUNDS = 100 };
	uint64_t lost = 0;

	for (unsigned int seed = 1; seed <= ROUNDS; seed++) {
		char path[PATH_MAX];
		uint64_t got;
		int flips;

		srand(seed);
		fill_segments(f, RECORDS);
		flips = 1 + rand() % 8;
		for (int i = 0; i < flips; i++) {
			size_t len;
			char *bytes;

			find_nth_file(f->dir, ".seg", (unsigned int)rand(), path);
			bytes = read_file(path, &len);
			bytes[(size_t)rand() % len] ^= (char)(1 + rand() % 255);
			write_file(path, bytes, len);
			free(bytes);
		}
		open_spool(f);
		got = read_whole(&f->spool, RECORDS);
		if (got + (uint64_t)flips < RECORDS)
			fail_msg("seed %u: %d flips cost %d records", seed,
				 flips, RECORDS - (int)got);
		lost += RECORDS - got;
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
	assert_true(lost > ROUNDS);
}

/* What is cut off a file in the middle is known by the next, and the last by 'acked'. */
SPOOL_TEST(truncation_is_counted)
{
	enum { RECORDS = 1000 };

	for (unsigned int seed = 1; seed <= 40; seed++) {
		char path[PATH_MAX];
		size_t len;
		char *bytes;

		srand(seed);
		fill_segments(f, RECORDS);
		find_nth_file(f->dir, ".seg", seed, path);
		bytes = read_file(path, &len);
		write_file(path, bytes, (size_t)rand() % len);
		free(bytes);
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, RECORDS);
		assert_in_range(read_whole(&f->spool, RECORDS), 600, RECORDS - 1);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

/* Remove the file of segment @n of 1000 records; their spool is open again. */
static void lose_segment(struct spool_fixture *f, unsigned int n)
{
	char path[PATH_MAX];

	fill_segments(f, 1000);
	find_nth_file(f->dir, ".seg", n, path);
	assert_int_equal(unlink(path), 0);
	open_spool(f);
	assert_int_equal(f->spool.recovered.seq, 1000);
}

/* They count when their turn comes, also where that is when they have to make room. */
SPOOL_TEST(missing_records_are_counted_by_a_full_spool)
{
	lose_segment(f, 0);
	f->spool.options.max_bytes = f->spool.size;
	assert_true(put(&f->spool, 1000, 0));
	assert_true(f->spool.dropped[SPOOL_DAMAGED].seq > 0);
	assert_true(f->spool.dropped[SPOOL_FULL].seq > 0);
	assert_identity(&f->spool);
	spool_close(&f->spool);
}

SPOOL_TEST(missing_records_count_behind_those_that_are_in_hand)
{
	struct spool_item item;
	uint64_t n = 0;

	lose_segment(f, 1);
	while (spool_read(&f->spool, &item))
		n++;
	assert_in_range(n, 1, 999);
	assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq, 0);
	spool_ack(&f->spool, item.end);
	for (; spool_read(&f->spool, &item); n++)
		spool_ack(&f->spool, item.end);
	assert_int_equal(f->spool.delivered.seq, n);
	assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq, 1000 - n);
	spool_close(&f->spool);
}

/* One file never costs the others. */
SPOOL_TEST(hostile_files_are_left_out)
{
	static const struct {
		const char *name;
		void (*make)(const char *path);
	} cases[] = {
		{ "00000000000000ff.seg", make_dir },
		{ "00000000000000ff.seg", make_link },
		{ "00000000000000ff.seg", make_fifo },
		{ "00000000000000ff.seg", make_empty },
		{ "ffffffffffffffff.seg", make_empty },
		{ "00000000000000ff.seg", make_rubbish },
		{ "ffffffffffffffff.seg", make_rubbish },
		{ "00000000000000ff.seg", make_huge },
		{ "00000000000000ff.seg", make_others },
		{ "acked.new", make_link },
		{ "acked.new", make_dir },
		{ "lock", make_dir },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[PATH_MAX];
		struct spool_item item;

		free(make_segment(f, 300, path, &(size_t){ 0 }));
		snprintf(path, sizeof(path), "%s/%s", f->dir, cases[i].name);
		unlink(path);
		cases[i].make(path);
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, 300);
		get_all(&f->spool, 0, 300, &item);
		spool_ack(&f->spool, item.end);
		put_all(&f->spool, 300, 310);
		get_all(&f->spool, 300, 310, &item);
		assert_identity(&f->spool);
		assert_int_equal(spool_sync(&f->spool), 0);
		spool_close(&f->spool);
		assert_untouched();
		empty_dir(f->dir);
	}
}

/* The file that there is may itself be made huge: it is all hole behind its end. */
SPOOL_TEST(file_with_a_hole_costs_no_memory)
{
	struct spool_item item;
	char path[PATH_MAX];

	free(make_segment(f, 300, path, &(size_t){ 0 }));
	make_huge(path);
	open_spool(f);
	get_all(&f->spool, 0, 300, &item);
	put_all(&f->spool, 300, 310);
	get_all(&f->spool, 300, 310, &item);
	spool_close(&f->spool);
}

SPOOL_TEST(damaged_acked_file_costs_nothing_but_repetition)
{
	char path[PATH_MAX];
	struct spool_item item;

	open_on_disk(f);
	put_all(&f->spool, 0, 50);
	get_all(&f->spool, 0, 20, &item);
	spool_ack(&f->spool, item.end);
	spool_close(&f->spool);
	snprintf(path, sizeof(path), "%s/acked", f->dir);
	write_file(path, "rubbish", 7);
	open_spool(f);
	get_all(&f->spool, 0, 50, &item);
	assert_identity(&f->spool);
	spool_close(&f->spool);
}
