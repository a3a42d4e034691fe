// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A spool's directory after anything may have happened to its file. The input says
 * how many records there were, where the file was cut, and which of its bytes
 * changed: threes of an offset's two bytes and of what is flipped there.
 */
#include "lib_fuzz.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/io.h"
#include "base/log.h"
#include "sink/spool/spool.h"

enum { RECORDS_MAX = 64, FILE_SIZE_MAX = 1 << 16 };

void log_write(const struct log *log, int level, const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

static char dir[] = "/dev/shm/netobs-fuzz.XXXXXX";

static void remove_dir(void)
{
	struct dirent **entries;
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	int n = scandir(dir, &entries, NULL, NULL);

	for (int i = 0; i < n; i++) {
		unlinkat(dir_fd, entries[i]->d_name, 0);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	close(dir_fd);
}

static void at_exit(void)
{
	remove_dir();
	rmdir(dir);
}

static size_t make_record(uint64_t n, char *buf)
{
	size_t len = 1 + n * 37 % 300;

	memset(buf, (int)n, len);
	return len;
}

static void open_spool(struct spool *spool)
{
	const struct spool_options options = { .dir = dir, .max_bytes = 1 << 20 };

	check(!spool_open(spool, &options));
}

static void damage(const uint8_t *data, size_t size)
{
	char path[64], bytes[FILE_SIZE_MAX];
	size_t len, cut = data[0] | (size_t)data[1] << 8;
	int fd;

	snprintf(path, sizeof(path), "%s/0000000000000000.seg", dir);
	fd = open(path, O_RDWR);
	check(fd >= 0);
	len = (size_t)read(fd, bytes, sizeof(bytes));
	for (data += 2, size -= 2; size >= 3; data += 3, size -= 3) {
		size_t at = data[0] | (size_t)data[1] << 8;

		if (at < len)
			bytes[at] ^= (char)data[2];
	}
	check(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	if (cut < len)
		check(!ftruncate(fd, (off_t)cut));
	close(fd);
}

/* They are records that were there and not acknowledged, in order. */
static void read_back(uint64_t n)
{
	struct spool spool;
	struct spool_item item;
	struct position in, out;
	uint64_t got;

	open_spool(&spool);
	got = spool.acked.seq;
	while (spool_read(&spool, &item)) {
		char record[512];

		check(item.end.seq > got);
		got = item.end.seq;
		check(got <= n && item.len == make_record(got - 1, record));
		check(!memcmp(item.record, record, item.len));
		if (got % 3 == 0)
			spool_ack(&spool, item.end);
	}
	in = position_add(spool.recovered, spool.accepted);
	out = position_add(spool.delivered, spool_pending(&spool));
	for (int i = 0; i < SPOOL_DROPS; i++)
		out = position_add(out, spool.dropped[i]);
	check(!memcmp(&in, &out, sizeof(in)));
	spool_close(&spool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_ready;
	struct spool spool;
	uint64_t n;

	if (!is_ready) {
		check(mkdtemp(dir));
		atexit(at_exit);
		is_ready = true;
	}
	if (size < 3)
		return 0;
	n = 1 + data[0] % RECORDS_MAX;
	open_spool(&spool);
	for (uint64_t i = 0; i < n; i++) {
		const struct position own = { 1, i, 2 * i };
		char record[512];
		size_t len = make_record(i, record);
		void *place = spool_reserve(&spool, len, own, 0);

		check(place);
		memcpy(place, record, len);
		spool_commit(&spool, len);
	}
	spool_close(&spool);
	damage(data + 1, size - 1);
	read_back(n);
	read_back(n); /* with the repairs of the first one */
	remove_dir();
	return 0;
}
