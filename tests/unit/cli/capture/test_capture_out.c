/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The ring of files of a capture, on a disk that fails. */
#include "lib_test.h"

#include <dirent.h>

#include <netobs/capture.h>

#include "cli/capture/capture_out.h"

enum { SIZE = 100 };

/* Files that are new have no room. */
static bool is_failing;

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	if (!is_failing || fd <= STDERR_FILENO || lseek(fd, 0, SEEK_CUR) > 0)
		return __real_write(fd, bytes, len);
	errno = EIO;
	return -1;
}

static int count_files(const char *path)
{
	DIR *directory = opendir(path);
	int n = 0;

	for (struct dirent *entry; (entry = readdir(directory));)
		n += entry->d_type == DT_REG;
	closedir(directory);
	return n;
}

TEST(the_only_file_is_kept_until_the_next_one_is_there)
{
	char directory[] = "/tmp/netobs-ring-XXXXXX", path[64];
	const struct capture_out_options options = {
		.path = path,
		.format = NETOBS_PCAPNG,
		.rotate_bytes = SIZE,
		.keep = 1,
	};
	const NETOBS_OPTS(netobs_capture_opts, opts, .on_packet = (void *)1);
	struct netobs *capture;
	struct capture_out out;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/ring.pcapng", directory);
	assert_int_equal(netobs_capture_new(&opts, &capture), 0);
	assert_int_equal(capture_out_open(&out, &options), 0);
	assert_int_equal(capture_out_begin(&out, capture), 0);
	capture_out_start(&out);
	for (int i = 0; i < 3; i++) {
		capture_out_rotate(&out);
		assert_int_equal(out.error, 0);
		assert_int_equal(count_files(directory), 1);
	}
	is_failing = true;
	capture_out_rotate(&out);
	is_failing = false;
	assert_int_equal(out.error, -EIO);
	assert_int_equal(count_files(directory), 1);
	unlink(out.names[0]);
	capture_out_close(&out);
	netobs_free(capture);
	assert_int_equal(rmdir(directory), 0);
}
