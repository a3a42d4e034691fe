/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "clock.h"

#include "clock_ms.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

int64_t clock_thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* 0 also where the kernel has no time namespaces (before 5.6), or /proc is missing. */
static int64_t read_namespace_offset(void)
{
	cleanup_fd int fd =
		open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
	long long seconds, rest;
	char text[256] = "";
	const char *boot;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 0;
	boot = strstr(text, "boottime");
	if (!boot || sscanf(boot, "boottime %lld %lld", &seconds, &rest) != 2)
		return 0;
	return seconds * NSEC_PER_SEC + rest;
}

void clock_init(struct clock *clock, enum clock_kind kind)
{
	*clock = (struct clock){ .kind = kind };
	if (kind != CLOCK_PACKET)
		clock->namespace_offset = read_namespace_offset();
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
		int64_t before = clock_ns(CLOCK_BOOTTIME);
		int64_t wall = clock_ns(CLOCK_REALTIME);
		int64_t after = clock_ns(CLOCK_BOOTTIME);

		if (after - before >= best)
			continue;
		best = after - before;
		clock->wall_offset =
			wall - clock_to_stamp(clock, before + best / 2);
		clock->wall_offset &= -2; /* a time stays odd or even */
	}
}

int64_t clock_to_stamp(const struct clock *clock, int64_t boot_ns)
{
	return boot_ns - clock->namespace_offset;
}
