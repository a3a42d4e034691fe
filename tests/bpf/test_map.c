// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Calls on maps that wait are made while the caller goes on. */
#include "lib_lab.h"
#include "lib_test.h"

#include "engine/map.h"
#include "base/util.h"

#include "bpf/types.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

enum { PATIENCE_MS = 60000 };

/* As a caller waits that has something else to do. */
static int make(uint32_t n_buckets, uint32_t *ret_waits)
{
	struct map_call *call = NULL;
	int fd;

	*ret_waits = 0;
	assert_int_equal(map_make_table_async(n_buckets, &call), 0);
	while ((fd = map_call_result(&call)) == -EAGAIN) {
		assert_in_range(++*ret_waits, 1, PATIENCE_MS);
		usleep(1000);
	}
	assert_null(call);
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
	cleanup_fd int fd = map_make_table(1 << 14);

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
	map_call_abandon(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (uint32_t wait_ms = 0; wait_ms < 200; wait_ms += 100) {
			struct map_call *call;

			assert_int_equal(map_make_table_async(sizes[i], &call),
					 0);
			usleep(1000 * wait_ms);
			map_call_abandon(call);
		}
	for (uint32_t waits = 0; lab_count_fds() != before; waits++) {
		assert_in_range(waits, 0, PATIENCE_MS);
		usleep(1000);
	}
}

/* A map of maps with one place, and two maps to put there. */
static void changes_of_a_map_of_maps_take_effect_at_once(void **state)
{
	cleanup_fd int first = map_make_array(NULL, 8, 1, 0);
	cleanup_fd int second = map_make_array(NULL, 8, 1, 0);
	cleanup_fd int outer = map_make_outer(first, 1);
	uint32_t index = 0, first_id, second_id;

	(void)state;
	assert_true(outer >= 0);
	assert_int_equal(map_update(outer, index, first), 0);
	assert_int_equal(bpf_map_lookup_elem(outer, &index, &first_id), 0);
	assert_int_equal(map_update(outer, index, -1), 0);
	assert_int_equal(bpf_map_lookup_elem(outer, &index, &second_id), -ENOENT);
	assert_int_equal(map_update_async(outer, index, second), 0);
	close_fd(&second); /* the call has a copy */
	for (uint32_t waits = 0; bpf_map_lookup_elem(outer, &index, &second_id);
	     waits++) {
		assert_in_range(waits, 0, PATIENCE_MS);
		usleep(1000);
	}
	assert_int_not_equal(second_id, first_id);
}

static void grace_periods_end(void **state)
{
	struct map_call *call;
	uint32_t waits = 0;
	int ret;

	(void)state;
	assert_int_equal(map_grace_async(&call), 0);
	while ((ret = map_call_result(&call)) == -EAGAIN) {
		assert_in_range(++waits, 1, PATIENCE_MS);
		usleep(1000);
	}
	assert_int_equal(ret, 0);
	assert_null(call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_tables_are_made_at_once),
		cmocka_unit_test(callers_of_large_ones_go_on),
		cmocka_unit_test(callers_may_wait),
		cmocka_unit_test(errors_come_back),
		cmocka_unit_test(abandoned_ones_are_closed),
		cmocka_unit_test(changes_of_a_map_of_maps_take_effect_at_once),
		cmocka_unit_test(grace_periods_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
