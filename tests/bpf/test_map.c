// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Large tables are made while the caller goes on with what cannot wait. */
#include "lib_lab.h"
#include "lib_test.h"

#include "engine/table_make.h"
#include "base/util.h"

#include "bpf/types.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

enum { PATIENCE_MS = 60000 };

/* As a caller waits that has something else to do. */
static int make(uint32_t n_buckets, uint32_t *ret_waits)
{
	struct table_making *making = NULL;
	int fd;

	*ret_waits = 0;
	assert_int_equal(table_make_begin(n_buckets, &making), 0);
	while ((fd = table_make_result(&making)) == -EAGAIN) {
		assert_in_range(++*ret_waits, 1, PATIENCE_MS);
		usleep(1000);
	}
	assert_null(making);
	return fd;
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
	uint32_t waits;
	cleanup_fd int fd = make(512, &waits);

	(void)state;
	assert_has_buckets(fd, 512);
	assert_int_equal(waits, 0);
}

static void callers_of_large_ones_go_on(void **state)
{
	enum { LARGE = 1 << 17 }; /* 272 MiB */
	uint32_t waits;
	cleanup_fd int fd = make(LARGE, &waits);

	(void)state;
	assert_has_buckets(fd, LARGE);
	assert_true(waits > 0);
}

static void callers_may_wait(void **state)
{
	cleanup_fd int fd = table_make(1 << 14);

	(void)state;
	assert_has_buckets(fd, 1 << 14);
}

static void errors_come_back(void **state)
{
	uint32_t waits;

	(void)state;
	assert_true(make(UINT32_MAX, &waits) < 0);
	assert_true(make(0, &waits) < 0);
}

static void abandoned_ones_are_closed(void **state)
{
	static const uint32_t sizes[] = { 512, 1 << 15 };
	int before = lab_count_fds();

	(void)state;
	table_make_abandon(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (uint32_t wait_ms = 0; wait_ms < 200; wait_ms += 100) {
			struct table_making *making;

			assert_int_equal(table_make_begin(sizes[i], &making), 0);
			usleep(1000 * wait_ms);
			table_make_abandon(making);
		}
	for (uint32_t waits = 0; lab_count_fds() != before; waits++) {
		assert_in_range(waits, 0, PATIENCE_MS);
		usleep(1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_tables_are_made_at_once),
		cmocka_unit_test(callers_of_large_ones_go_on),
		cmocka_unit_test(callers_may_wait),
		cmocka_unit_test(errors_come_back),
		cmocka_unit_test(abandoned_ones_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
