/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "clock.h"

#include "util.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

int64_t clock_boot_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

int64_t clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void clock_init(struct clock *clock, enum clock_kind kind)
{
	clock->kind = kind;
	clock->wall_offset = 0;
	clock_calibrate(clock);
}

/*
 * Two readings cannot be taken at once. Of a few attempts the one with the
 * least time in between is the best; preemption in all of them is unlikely.
 */
void clock_calibrate(struct clock *clock)
{
	int64_t best = INT64_MAX;

	if (clock->kind == CLOCK_PACKET)
		return;
	for (int i = 0; i < 5; i++) {
		int64_t before = read_ns(CLOCK_BOOTTIME);
		int64_t wall = read_ns(CLOCK_REALTIME);
		int64_t after = read_ns(CLOCK_BOOTTIME);

		if (after - before >= best)
			continue;
		best = after - before;
		clock->wall_offset = wall - (before + best / 2);
	}
}

int64_t clock_to_wall(const struct clock *clock, int64_t ns)
{
	return ns + clock->wall_offset;
}
