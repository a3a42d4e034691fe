/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Waits for what the kernel, another thread or another process does. On a loaded machine each may
 * take seconds, so the limit is only for what never comes.
 */
#ifndef HARNESS_LIB_WAIT_H
#define HARNESS_LIB_WAIT_H

#include "lib_test.h"

#include "base/clock_ms.h"

enum { WAIT_MS = 60000, WAIT_STEP_US = 1000 };

/* Do @step until @condition holds; fail the test where that takes longer than WAIT_MS. */
#define await_by(condition, step)                                           \
	do {                                                                \
		const int64_t await_end_ms = now_ms() + WAIT_MS;            \
                                                                            \
		while (!(condition)) {                                      \
			if (now_ms() >= await_end_ms)                       \
				fail_msg("not in %d s: %s", WAIT_MS / 1000, \
					 #condition);                       \
			step;                                               \
		}                                                           \
	} while (0)

#define await(condition) await_by(condition, usleep(WAIT_STEP_US))

#endif
