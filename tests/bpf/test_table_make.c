// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Large tables are made while the caller goes on with what cannot wait. */
#include "lib_test.h"

#include "table_make.h"
#include "util.h"

#include "bpf/types.h"

#include <bpf/bpf.h>
#include <string.h>

static void count_call(void *ctx)
{
	++*(uint32_t *)ctx;
}

static void assert_has_buckets(int fd, uint32_t n_buckets)
{
	struct bpf_map_info info;
	uint32_t size = sizeof(info);

	assert_true(fd >= 0);
	memset(&info, 0, sizeof(info));
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	assert_int_equal(info.max_entries, n_buckets);
	assert_int_equal(info.value_size, sizeof(struct flow_bucket));
}

static void small_tables_are_made_at_once(void **state)
{
	uint32_t calls = 0;
	cleanup_fd int fd = table_make(1024, count_call, &calls);

	(void)state;
	assert_has_buckets(fd, 1024);
	assert_int_equal(calls, 0);
}

static void callers_of_large_ones_go_on(void **state)
{
	enum { LARGE = 1 << 17 }; /* 272 MiB */
	uint32_t calls = 0;
	cleanup_fd int fd = table_make(LARGE, count_call, &calls);

	(void)state;
	assert_has_buckets(fd, LARGE);
	assert_true(calls > 0);
}

static void callers_with_nothing_to_do_wait(void **state)
{
	cleanup_fd int fd = table_make(1 << 14, NULL, NULL);

	(void)state;
	assert_has_buckets(fd, 1 << 14);
}

static void errors_come_back(void **state)
{
	uint32_t calls = 0;

	(void)state;
	assert_true(table_make(UINT32_MAX, count_call, &calls) < 0);
	assert_true(table_make(0, count_call, &calls) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_tables_are_made_at_once),
		cmocka_unit_test(callers_of_large_ones_go_on),
		cmocka_unit_test(callers_with_nothing_to_do_wait),
		cmocka_unit_test(errors_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
