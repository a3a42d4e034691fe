// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sum.h"

#include <errno.h>

#include "record/any.h"

struct netobs_group_sum sum_of_flow(const struct netobs_flow *flow)
{
	const uint64_t samples =
		flow->has & NETOBS_HAS_RTT ? flow->rtt_samples : 0;

	return (struct netobs_group_sum){
		.flows = 1,
		.packets = flow->packets,
		.bytes = flow->bytes,
		.rtt_samples = samples,
		.rtt_sum_ns = samples * flow->rtt_ns,
		.retransmits = flow->retransmits,
		.start_ns = flow->start_ns,
		.end_ns = flow->end_ns,
		.sampling = flow->has & NETOBS_HAS_SAMPLING ? flow->sampling : 0,
		.sampling_mode = flow->sampling_mode
	};
}

void sum_subtract(struct netobs_group_sum *sum,
		  const struct netobs_group_sum *part)
{
	sum->flows -= part->flows;
	sum->packets -= part->packets;
	sum->bytes -= part->bytes;
	sum->sent_packets -= part->sent_packets;
	sum->sent_bytes -= part->sent_bytes;
	sum->rtt_samples -= part->rtt_samples;
	sum->rtt_sum_ns -= part->rtt_sum_ns;
	sum->retransmits -= part->retransmits;
}

void netobs_group_sum_add(struct netobs_group_sum *sum,
			  const struct netobs_group_sum *more)
{
	if (!more->flows)
		return;
	if (!sum->flows || more->start_ns < sum->start_ns)
		sum->start_ns = more->start_ns;
	if (!sum->flows || more->end_ns > sum->end_ns)
		sum->end_ns = more->end_ns;
	if (!sum->flows) {
		sum->sampling = more->sampling;
		sum->sampling_mode = more->sampling_mode;
	}
	sum->is_mixed |= more->is_mixed || sum->sampling != more->sampling ||
			 sum->sampling_mode != more->sampling_mode;
	sum->flows += more->flows;
	sum->packets += more->packets;
	sum->bytes += more->bytes;
	sum->sent_packets += more->sent_packets;
	sum->sent_bytes += more->sent_bytes;
	sum->rtt_samples += more->rtt_samples;
	sum->rtt_sum_ns += more->rtt_sum_ns;
	sum->retransmits += more->retransmits;
}

int netobs_group_sum_flow(struct netobs_group_sum *sum,
			  const struct netobs_flow *flow)
{
	struct netobs_group_sum more;
	union any_record copy;

	flow = sum && flow ? flow_view(flow, &copy) : NULL;
	if (!flow)
		return -EINVAL;
	more = sum_of_flow(flow);
	netobs_group_sum_add(sum, &more);
	return 0;
}
