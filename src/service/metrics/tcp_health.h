/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The health of TCP connections, summed up over flow records for metrics. */
#ifndef NETOBS_SERVICE_METRICS_TCP_HEALTH_H
#define NETOBS_SERVICE_METRICS_TCP_HEALTH_H

#include <stdint.h>

#include <netobs/flow.h>
#include <netobs/series.h>

struct tcp_health {
	/* Times from records with new samples. */
	struct netobs_times rtt, path_rtt, response_time, app_latency;
	uint64_t retransmits, retransmitted_bytes;
	uint64_t out_of_order, late_unknown, duplicate_acks, zero_windows;
};

/** Add a record; one without RTT measurement adds nothing. */
void tcp_health_add(struct tcp_health *health, const struct netobs_flow *flow);

#endif
