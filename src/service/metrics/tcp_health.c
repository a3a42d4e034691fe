/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "metrics.h"

#include "base/times.h"

void tcp_health_add(struct tcp_health *health, const struct netobs_flow *flow)
{
	if (!(flow->has & NETOBS_HAS_TCP_HEALTH))
		return;
	/* The times are those of the connection until they are measured again. */
	if (flow_has_new_rtt(flow))
		times_add(&health->rtt, flow->rtt_ns);
	if (flow->has & NETOBS_HAS_HANDSHAKE_RTT && flow->rtt_samples)
		times_add(&health->path_rtt, flow->path_rtt_ns);
	if (flow->has & NETOBS_HAS_RESPONSE_TIME && flow->app_responses)
		times_add(&health->response_time, flow->response_time_ns);
	if (flow_has_new_app_latency(flow))
		times_add(&health->app_latency, flow->app_latency_ns);
	health->retransmits += flow->retransmits;
	health->retransmitted_bytes += flow->retransmitted_bytes;
	health->out_of_order += flow->out_of_order;
	health->late_unknown += flow->late_unknown;
	health->duplicate_acks += flow->duplicate_acks;
	health->zero_windows += flow->zero_windows;
}
