/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Spools of numbered records, in memory or in a directory of their own. */
#ifndef HARNESS_LIB_SPOOL_H
#define HARNESS_LIB_SPOOL_H

#include "sink/spool/spool.h"
#include "lib_test.h"

#include <limits.h>

struct spool_fixture {
	char dir[PATH_MAX / 2];
	struct log log;
	struct spool_options options;
	struct spool spool;
};

int spool_set_up(void **state);
int spool_tear_down(void **state);

#define SPOOL_TEST(name) \
	TEST_OF(name, struct spool_fixture *f, spool_set_up, spool_tear_down)

void use_disk(struct spool_fixture *f, bool on_disk);
void open_spool(struct spool_fixture *f);
void open_on_disk(struct spool_fixture *f);

/* ---- Files --------------------------------------------------------------------- */

/* The names that end in @suffix, in order; the path of the last is kept. */
int count_files(const char *dir, const char *suffix, char *ret_last);
/* The path of one of those, as @n modulo their number says. */
void find_nth_file(const char *dir, const char *suffix, unsigned int n,
		   char ret_path[PATH_MAX]);

void empty_dir(const char *dir);

/* The caller's to be freed. */
char *read_file(const char *path, size_t *ret_len);
void write_file(const char *path, const char *bytes, size_t len);

/* ---- Records ------------------------------------------------------------------- */

/* Of record @n: all lengths from 1 up come, and the contents tell the number. */
size_t make_record(uint64_t n, char *buf);

bool put(struct spool *spool, uint64_t n, int64_t now_ms);

/* Those from @from to before @to. */
void put_all(struct spool *spool, uint64_t from, uint64_t to);
void get_all(struct spool *spool, uint64_t from, uint64_t to,
	     struct spool_item *item);
void assert_is_record(const struct spool_item *item, uint64_t n);

/* Whatever came is acknowledged, dropped or there. */
void assert_identity(const struct spool *spool);

#endif
