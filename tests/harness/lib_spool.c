// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_spool.h"

#include "lib_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* ---- Files --------------------------------------------------------------------- */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name);

	return len >= strlen(suffix) &&
	       !strcmp(name + len - strlen(suffix), suffix);
}

/* The path of the @nth is kept, or of the last; NULL: none. */
static int look_for_files(const char *dir, const char *suffix, int nth,
			  char *ret_path)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_visible, alphasort), found = 0;

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		bool is_one = has_suffix(entries[i]->d_name, suffix);

		if (is_one && ret_path && found <= nth)
			snprintf(ret_path, PATH_MAX, "%s/%s", dir,
				 entries[i]->d_name);
		found += is_one;
		free(entries[i]);
	}
	free(entries);
	return found;
}

int count_files(const char *dir, const char *suffix, char *ret_last)
{
	return look_for_files(dir, suffix, INT_MAX, ret_last);
}

void find_nth_file(const char *dir, const char *suffix, unsigned int n,
		   char ret_path[PATH_MAX])
{
	int all = count_files(dir, suffix, NULL);

	assert_true(all > 0);
	if (all > 0)
		look_for_files(dir, suffix, (int)(n % (unsigned int)all),
			       ret_path);
}

void empty_dir(const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_visible, NULL);

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if (unlink(path))
			rmdir(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int spool_set_up(void **state)
{
	struct spool_fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR") ?: "/dev/shm"; /* syncs take no time */

	snprintf(f->dir, sizeof(f->dir), "%s/netobs-spool.XXXXXX", tmp);
	assert_non_null(mkdtemp(f->dir));
	f->options =
		(struct spool_options){ .max_bytes = 64 << 20, .log = &f->log };
	*state = f;
	return 0;
}

int spool_tear_down(void **state)
{
	struct spool_fixture *f = *state;

	empty_dir(f->dir);
	rmdir(f->dir);
	free(f);
	return 0;
}

void use_disk(struct spool_fixture *f, bool on_disk)
{
	f->options.dir = on_disk ? f->dir : NULL;
}

void open_spool(struct spool_fixture *f)
{
	assert_int_equal(spool_open(&f->spool, &f->options), 0);
	assert_true(f->spool.durable.seq >= f->spool.noted.durable.seq);
	assert_true(f->spool.durable.seq <= f->spool.tail.seq);
}

void open_on_disk(struct spool_fixture *f)
{
	use_disk(f, true);
	open_spool(f);
}

char *read_file(const char *path, size_t *ret_len)
{
	int fd = open(path, O_RDONLY);
	struct stat stat = { 0 };
	char *bytes;

	assert_true(fd >= 0 && !fstat(fd, &stat));
	bytes = malloc((size_t)stat.st_size + 1);
	assert_int_equal(read(fd, bytes, (size_t)stat.st_size), stat.st_size);
	close(fd);
	*ret_len = (size_t)stat.st_size;
	return bytes;
}

void write_file(const char *path, const char *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

/* ---- Records ------------------------------------------------------------------- */

size_t make_record(uint64_t n, char *buf)
{
	size_t len = 1 + n * 37 % 700;

	for (size_t i = 0; i < len; i++)
		buf[i] = (char)(n * 131 + i);
	return len;
}

bool put(struct spool *spool, uint64_t n, int64_t now_ms)
{
	const struct position own = { 1, n % 5, n * 3 };
	char buf[1024];
	size_t len = make_record(n, buf);
	void *place = spool_reserve(spool, len, own, now_ms);

	if (!place)
		return false;
	memcpy(place, buf, len);
	spool_commit(spool, len);
	return true;
}

void put_all(struct spool *spool, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++)
		assert_true(put(spool, n, 0));
}

void assert_is_record(const struct spool_item *item, uint64_t n)
{
	char buf[1024];

	assert_int_equal(item->len, make_record(n, buf));
	assert_memory_equal(item->record, buf, item->len);
	assert_int_equal(item->own.packets, n % 5);
	assert_int_equal(item->own.bytes, n * 3);
}

void get_all(struct spool *spool, uint64_t from, uint64_t to,
	     struct spool_item *item)
{
	for (uint64_t n = from; n < to; n++) {
		assert_true(spool_read(spool, item));
		assert_is_record(item, n);
	}
}

void assert_identity(const struct spool *spool)
{
	struct position in = position_add(spool->recovered, spool->accepted);
	struct position out =
		position_add(spool->delivered, spool_pending(spool));

	for (int i = 0; i < SPOOL_DROPS; i++)
		out = position_add(out, spool->dropped[i]);
	assert_int_equal(in.seq, out.seq);
	assert_int_equal(in.packets, out.packets);
	assert_int_equal(in.bytes, out.bytes);
}
