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
static int wait_for(struct map_call **call)
{
	uint32_t waits = 0;
	int ret;

	while ((ret = map_call_result(call)) == -EAGAIN) {
		assert_in_range(++waits, 1, PATIENCE_MS);
		usleep(1000);
	}
	assert_null(*call);
	return ret;
}

static uint32_t id_at(int outer_fd, uint32_t index)
{
	uint32_t id = 0;

	bpf_map_lookup_elem(outer_fd, &index, &id);
	return id;
}

static void changes_of_a_map_of_maps_take_effect_at_once(void **state)
{
	cleanup_fd int first = map_make_array(NULL, 8, 1, 0);
	cleanup_fd int second = map_make_array(NULL, 8, 1, 0);
	cleanup_fd int outer = map_make_outer(first, 1);
	uint32_t first_id;

	(void)state;
	assert_true(outer >= 0);
	assert_int_equal(map_update(outer, 0, first), 0);
	first_id = id_at(outer, 0);
	assert_int_equal(map_update(outer, 0, second), 0);
	assert_int_not_equal(id_at(outer, 0), first_id);
}

static void table_is_replaced_while_the_caller_goes_on(void **state)
{
	cleanup_fd int first = map_make_overflow(100);
	cleanup_fd int outer = map_make_outer(first, 1);
	cleanup_fd int copy = dup(outer), fd = -1;
	struct bpf_map_info info;
	uint32_t size = sizeof(info);
	struct map_call *call;

	(void)state;
	assert_int_equal(map_update(outer, 0, first), 0);
	assert_int_equal(map_replace_overflow_async(copy, 0, 1 << 20, &call), 0);
	close_fd(&copy); /* the call has its own */
	fd = wait_for(&call);
	assert_true(fd >= 0);
	memset(&info, 0, sizeof(info));
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	assert_int_equal(info.max_entries, 1 << 20);
	assert_int_equal(info.id, id_at(outer, 0));
}

static void errors_come_back(void **state)
{
	cleanup_fd int first = map_make_overflow(100);
	cleanup_fd int outer = map_make_outer(first, 1);
	struct map_call *call;

	(void)state;
	assert_int_equal(map_replace_overflow_async(outer, 0, 0, &call), 0);
	assert_true(wait_for(&call) < 0);
	assert_int_equal(map_replace_overflow_async(outer, 7, 100, &call), 0);
	assert_true(wait_for(&call) < 0);
	assert_true(map_replace_overflow_async(-1, 0, 100, &call) < 0);
}

static void abandoned_ones_are_closed(void **state)
{
	cleanup_fd int first = map_make_overflow(100);
	cleanup_fd int outer = map_make_outer(first, 1);
	int before = lab_count_fds();

	(void)state;
	map_call_abandon(NULL);
	for (uint32_t wait_ms = 0; wait_ms < 200; wait_ms += 100) {
		struct map_call *call;

		assert_int_equal(
			map_replace_overflow_async(outer, 0, 1 << 18, &call), 0);
		usleep(1000 * wait_ms);
		map_call_abandon(call);
	}
	for (uint32_t waits = 0; lab_count_fds() != before; waits++) {
		assert_in_range(waits, 0, PATIENCE_MS);
		usleep(1000);
	}
}

static void grace_periods_end(void **state)
{
	struct map_call *call;

	(void)state;
	assert_int_equal(map_grace_async(&call), 0);
	assert_int_equal(wait_for(&call), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_of_a_map_of_maps_take_effect_at_once),
		cmocka_unit_test(table_is_replaced_while_the_caller_goes_on),
		cmocka_unit_test(errors_come_back),
		cmocka_unit_test(abandoned_ones_are_closed),
		cmocka_unit_test(grace_periods_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
