/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Clocks that a test moves, for programs that include this: the linker gives them the C library's
 * clocks, ahead by the time that was skipped, and timers that expire by these.
 */
#ifndef HARNESS_LIB_CLOCK_H
#define HARNESS_LIB_CLOCK_H

#include <stdint.h>

/* All at once: a timer that was to expire meanwhile does so now. */
void clock_skip(int64_t ms);

/*
 * From now on, poll() does not wait: where no descriptor is ready, the clock is moved
 * to the next timer, or to the end of the wait. For code to which no other thread or process
 * makes descriptors ready, since these have no time to.
 */
void clock_skip_waits(void);

#endif
