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

/* Any number, of a sequence that test_seed() begins. */
static inline uint64_t test_random(void)
{
	static uint64_t state;
	static bool is_seeded;
	uint64_t mixed;

	if (!is_seeded)
		state = test_seed();
	is_seeded = true;
	mixed = state += 0x9e3779b97f4a7c15; /* splitmix64 */
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

static inline uint32_t test_below(uint32_t n)
{
	return (uint32_t)(test_random() % n);
}

#endif
