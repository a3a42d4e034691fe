/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The ring of files of a capture, on a disk that fails. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The command's parts are in no library: compiled in here. */
#include "cli/capture/capture_out.c"

enum { SIZE = 100 };

static bool is_failing;

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	if (!is_failing || fd <= STDERR_FILENO)
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

static void the_only_file_is_kept_until_the_next_one_is_there(void **state)
{
	char directory[] = "/tmp/netobs-ring-XXXXXX", path[64];
	const struct capture_out_options options = {
		.path = path,
		.format = NETOBS_PCAPNG,
		.rotate_bytes = SIZE,
		.keep = 1,
	};
	const struct netobs_capture_opts opts = { .sz = sizeof(opts),
						  .on_packet = (void *)1 };
	struct netobs_capture *capture;
	struct capture_out out;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/ring.pcapng", directory);
	assert_int_equal(netobs_capture_new(&opts, &capture), 0);
	assert_int_equal(capture_out_open(&out, &options), 0);
	assert_int_equal(capture_out_begin(&out, capture), 0);
	capture_out_start(&out);
	for (int i = 0; i < 3; i++) {
		close_target(&out);
		begin_next(&out);
		assert_int_equal(out.error, 0);
		assert_int_equal(count_files(directory), 1);
	}
	close_target(&out);
	is_failing = true;
	begin_next(&out);
	is_failing = false;
	assert_int_equal(out.error, -EIO);
	assert_int_equal(count_files(directory), 1);
	unlink(out.names[0]);
	capture_out_close(&out);
	netobs_capture_free(capture);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_only_file_is_kept_until_the_next_one_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
