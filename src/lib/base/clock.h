/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Converts times of the BPF programs to nanoseconds since 1970. */
#ifndef NETOBS_BASE_CLOCK_H
#define NETOBS_BASE_CLOCK_H

#include "bpf/types.h"

#include <stdint.h>

struct clock {
	enum clock_kind kind;
	int64_t wall_offset;	  /* CLOCK_REALTIME minus the programs' clock */
	int64_t namespace_offset; /* CLOCK_BOOTTIME minus the programs' clock */
};

void clock_init(struct clock *clock, enum clock_kind kind);

/* Measure the offset anew: the wall clock may have been stepped. */
void clock_calibrate(struct clock *clock);

/*
 * CLOCK_BOOTTIME, which goes on during suspend: the clock of the entries, but for the
 * offset of a time namespace, see time_namespaces(7).
 */
int64_t clock_boot_ns(void);

/* The CPU time of this thread. */
int64_t clock_thread_ns(void);

/* Convert clock_boot_ns() to the programs' clock. */
int64_t clock_to_stamp(const struct clock *clock, int64_t boot_ns);

static inline int64_t clock_to_wall(const struct clock *clock, int64_t ns)
{
	return ns + clock->wall_offset;
}

#endif
