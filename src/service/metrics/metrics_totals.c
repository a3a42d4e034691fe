// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/times.h"
#include "service/text/human.h"

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

/* A reason that finds no free entry counts as "other". */
static struct drop_total *find_total(struct drop_totals *totals,
				     const char *reason, const char *kind)
{
	struct drop_total *total = totals->reasons;
	const struct drop_total *const end = total + totals->n;

	while (total < end &&
	       (strcmp(total->reason, reason) || total->kind != kind))
		total++;
	if (total < end)
		return total;
	if (totals->n >= DROP_REASONS_MAX) {
		total = &totals->reasons[DROP_REASONS_MAX];
		reason = kind = "other";
	}
	if (total == end)
		totals->n++;
	snprintf(total->reason, sizeof(total->reason), "%s", reason);
	total->kind = kind;
	return total;
}

void drop_totals_add(struct drop_totals *totals, const struct netobs_drop *drop)
{
	struct drop_total *total = find_total(totals, drop_reason_text(drop),
					      netobs_drop_kind_name(drop->kind));

	total->packets += drop->packets;
	total->bytes += drop->bytes;
}
