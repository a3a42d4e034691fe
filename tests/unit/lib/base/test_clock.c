// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* From CLOCK_BOOTTIME to the wall clock. */
#include "base/clock.h"
#include "lib_test.h"

#include <time.h>

TEST(clock_to_wall_adds_the_offset)
{
	const struct clock after = { .wall_offset = 1700000000LL * NSEC_PER_SEC };
	const struct clock before = { .wall_offset = -5 };

	assert_int_equal(clock_to_wall(&after, 3), 1700000000000000003LL);
	assert_int_equal(clock_to_wall(&before, 3), -2);
}

TEST(clock_init_knows_the_offset)
{
	struct clock clock;
	struct timespec now;
	int64_t wall_ns, tolerance_ns = 5 * NSEC_PER_SEC;

	clock_init(&clock, CLOCK_HOST);
	clock_gettime(CLOCK_REALTIME, &now);
	wall_ns = now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
	assert_true(llabs(clock_to_wall(&clock, clock_boot_ns()) - wall_ns) <
		    tolerance_ns);
}

TEST(clock_calibrate_corrects_a_wrong_offset)
{
	struct clock clock;
	int64_t offset;

	clock_init(&clock, CLOCK_HOST);
	offset = clock.wall_offset;
	clock.wall_offset += 3600 * NSEC_PER_SEC; /* as after a step */
	clock_calibrate(&clock);
	assert_true(llabs(clock.wall_offset - offset) < 60 * NSEC_PER_SEC);
}

TEST(clock_of_packets_is_already_the_walls)
{
	struct clock clock;

	clock_init(&clock, CLOCK_PACKET);
	clock_calibrate(&clock);
	assert_int_equal(clock_to_wall(&clock, 1234567890), 1234567890);
}

TEST(clock_boot_does_not_go_back)
{
	int64_t last = clock_boot_ns();

	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_boot_ns();

		assert_true(now >= last);
		last = now;
	}
}
