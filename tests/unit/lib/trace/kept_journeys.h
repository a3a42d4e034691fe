/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Journeys that are kept as they are delivered. */
#ifndef TESTS_TRACE_KEPT_JOURNEYS_H
#define TESTS_TRACE_KEPT_JOURNEYS_H

#include "lib_test.h"

#include "trace/journeys.h"

#define BIT(part) (1U << NETOBS_JOURNEY_##part)
#define START_NS 1700000000000000000LL

enum { US = 1000 };

struct world {
	struct journeys *journeys;
	struct netobs_journey *got;
	uint32_t n, capacity;
	uint8_t protocol; /* of events; 0: TCP */
};

static void keep_journey(struct netobs_journey *journey, void *ctx)
{
	struct world *world = ctx;

	assert_true(array_reserve(&world->got, world->n, &world->capacity,
				  sizeof(*world->got), 16));
	world->got[world->n++] = *journey;
}

static void open_world(struct world *world)
{
	assert_int_equal(journeys_new(keep_journey, world, &world->journeys), 0);
}

static void close_world(struct world *world)
{
	journeys_free(world->journeys);
	free(world->got);
}

TEST_FIXTURE(struct world, open_world, close_world)

static uint64_t part_us(const struct netobs_journey *journey,
			enum netobs_journey_part part)
{
	return journey->part_ns[part] / US;
}

#define CASE(name) TEST_OF(name, struct world *world, set_up, tear_down)

#endif
