/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The health of TCP connections, summed up over flow records for metrics. */
#ifndef NETOBS_SERVICE_METRICS_TCP_HEALTH_H
#define NETOBS_SERVICE_METRICS_TCP_HEALTH_H

#include <stdint.h>

#include <netobs/flow.h>

enum {
	TCP_TIMES = 21,
	TCP_TIME_SHORTEST_US = 16,
};

struct tcp_times {
	/* As netobs_engine_stats.drains_by_time, but from TCP_TIME_SHORTEST_US on. */
	uint64_t by_time[TCP_TIMES];
	uint64_t n, sum_ns;
};

void tcp_times_add(struct tcp_times *times, uint64_t ns);

struct tcp_health {
	/* Of records with new samples. */
	struct tcp_times rtt, path_rtt, response_time, app_latency;
	uint64_t retransmits, retransmitted_bytes;
	uint64_t out_of_order, late_unknown, duplicate_acks, zero_windows;
};

/** Add a record; one without RTT measurement adds nothing. */
void tcp_health_add(struct tcp_health *health, const struct netobs_flow *flow);

#endif
