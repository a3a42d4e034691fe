// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* How many places connections have, by counters that change while they are read. */
#include "lib_test.h"

#include "engine/connections.h"

TEST(places_are_those_created_and_not_evicted)
{
	const struct conn_counters counters = {
		.created = 10,
		.evicted_half_open = 1,
		.evicted_closed = 2,
		.evicted_idle = 3,
	};

	assert_int_equal(connections_used(&counters), 4);
}

/* More parts would be added, up to the limit, for connections that there are not. */
TEST(eviction_that_is_read_before_its_connection_takes_no_place)
{
	const struct conn_counters counters = { .created = 5,
						.evicted_closed = 6 };

	assert_int_equal(connections_used(&counters), 0);
}
