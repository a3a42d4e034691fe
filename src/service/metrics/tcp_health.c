/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "tcp_health.h"

void tcp_times_add(struct tcp_times *times, uint64_t ns)
{
	const uint64_t shortest_ns = TCP_TIME_SHORTEST_US * UINT64_C(1000);
	unsigned int class = 0;

	while (class < TCP_TIMES - 1 && ns > shortest_ns << class)
		class ++;
	times->by_time[class]++;
	times->n++;
	times->sum_ns += ns;
}

void tcp_health_add(struct tcp_health *health, const struct netobs_flow *flow)
{
	if (!(flow->has & NETOBS_HAS_TCP_HEALTH))
		return;
	/* The times are those of the connection until they are measured again. */
	if (flow->has & NETOBS_HAS_RTT && flow->rtt_samples)
		tcp_times_add(&health->rtt, flow->rtt_ns);
	if (flow->has & NETOBS_HAS_HANDSHAKE_RTT && flow->rtt_samples)
		tcp_times_add(&health->path_rtt, flow->path_rtt_ns);
	if (flow->has & NETOBS_HAS_RESPONSE_TIME && flow->app_responses)
		tcp_times_add(&health->response_time, flow->response_time_ns);
	if (flow->has & NETOBS_HAS_APP_LATENCY && flow->app_responses)
		tcp_times_add(&health->app_latency, flow->app_latency_ns);
	health->retransmits += flow->retransmits;
	health->retransmitted_bytes += flow->retransmitted_bytes;
	health->out_of_order += flow->out_of_order;
	health->late_unknown += flow->late_unknown;
	health->duplicate_acks += flow->duplicate_acks;
	health->zero_windows += flow->zero_windows;
}
