// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What metrics have of the times in flow records. */
#include "lib_test.h"

#include <netobs/flow.h>

#include "service/metrics/metrics.h"

static struct netobs_flow a_flow(uint32_t has)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_TCP_HEALTH | has,
		.rtt_ns = 1000000,
		.rtt_samples = 1,
		.path_rtt_ns = 700000,
		.response_time_ns = 5000000,
		.app_latency_ns = 4000000,
		.app_responses = 1,
	};
}

TEST(each_time_is_in_its_own_histogram)
{
	const struct netobs_flow whole =
		a_flow(NETOBS_HAS_RTT | NETOBS_HAS_HANDSHAKE_RTT |
		       NETOBS_HAS_RESPONSE_TIME | NETOBS_HAS_APP_LATENCY);
	struct tcp_health health = { 0 };

	tcp_health_add(&health, &whole);
	assert_int_equal(health.rtt.n, 1);
	assert_int_equal(health.rtt.sum_ns, 1000000);
	assert_int_equal(health.path_rtt.n, 1);
	assert_int_equal(health.path_rtt.sum_ns, 700000);
	assert_int_equal(health.response_time.n, 1);
	assert_int_equal(health.response_time.sum_ns, 5000000);
	assert_int_equal(health.app_latency.n, 1);
	assert_int_equal(health.app_latency.sum_ns, 4000000);
}

TEST(what_is_not_known_or_not_new_is_in_none)
{
	struct netobs_flow flow = a_flow(NETOBS_HAS_RESPONSE_TIME);
	struct tcp_health health = { 0 };

	tcp_health_add(&health, &flow);
	assert_int_equal(health.rtt.n, 0);
	assert_int_equal(health.path_rtt.n, 0);
	assert_int_equal(health.response_time.n, 1);
	assert_int_equal(health.app_latency.n, 0);
	flow = a_flow(NETOBS_HAS_RESPONSE_TIME | NETOBS_HAS_APP_LATENCY);
	flow.app_responses = 0;
	tcp_health_add(&health, &flow);
	assert_int_equal(health.response_time.n, 1);
	assert_int_equal(health.app_latency.n, 0);
}
