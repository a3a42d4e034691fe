// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Calls on maps that wait are made while the caller goes on. */
#include "lib_lab.h"
#include "lib_test.h"
#include "lib_wait.h"

#include "engine/map.h"

#include "bpf/types.h"

#include <bpf/bpf.h>

/* As a caller waits that has something else to do. */
static int wait_for(struct map_grace **grace)
{
	int ret;

	await((ret = map_grace_result(grace)) != -EAGAIN);
	assert_null(*grace);
	return ret;
}

static uint32_t id_at(int outer_fd, uint32_t index)
{
	uint32_t id = 0;

	bpf_map_lookup_elem(outer_fd, &index, &id);
	return id;
}

TEST(changes_of_a_map_of_maps_take_effect_at_once)
{
	cleanup_fd int first = map_make_array(NULL, 8, 1, 0);
	cleanup_fd int second = map_make_array(NULL, 8, 1, 0);
	cleanup_fd int outer = map_make_outer(first, 1);
	uint32_t first_id;

	assert_true(outer >= 0);
	assert_int_equal(map_update(outer, 0, first), 0);
	first_id = id_at(outer, 0);
	assert_int_equal(map_update(outer, 0, second), 0);
	assert_int_not_equal(id_at(outer, 0), first_id);
}

TEST(abandoned_ones_leave_nothing)
{
	int before = lab_count_fds();

	map_grace_abandon(NULL);
	for (uint32_t wait_ms = 0; wait_ms < 200; wait_ms += 100) {
		struct map_grace *grace;

		assert_int_equal(map_grace_begin(&grace), 0);
		usleep(1000 * wait_ms);
		map_grace_abandon(grace);
	}
	lab_await_fds(before);
}

TEST(grace_periods_end)
{
	struct map_grace *grace;

	assert_int_equal(map_grace_begin(&grace), 0);
	assert_int_equal(wait_for(&grace), 0);
}
