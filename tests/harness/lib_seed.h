/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef HARNESS_LIB_SEED_H
#define HARNESS_LIB_SEED_H

#include "lib_test.h"

#include <time.h>

/* What random inputs are made from: NETOBS_TEST_SEED, which repeats a run, or a new one. It is printed. */
static inline unsigned int test_seed(void)
{
	const char *given = getenv("NETOBS_TEST_SEED");
	struct timespec now;
	unsigned int seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = given ? (unsigned int)strtoul(given, NULL, 0) :
		       (unsigned int)(now.tv_sec + now.tv_nsec);
	print_message("NETOBS_TEST_SEED=%u\n", seed);
	return seed;
}

#endif
