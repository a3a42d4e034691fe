// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Rules of a context about flows: records are compared with them before they are passed on. */
#include "context.h"

#include "base/conversation.h"
#include "base/util.h"

#include <netobs/alert.h>
#include <netobs/flow.h>

#include <stdio.h>
#include <string.h>

_Static_assert((int)NETOBS_ALERT_METRICS == (int)ALERT_RULE_METRICS &&
		       (int)NETOBS_ALERT_DROPS == (int)ALERT_DROPS &&
		       (int)NETOBS_ALERT_DROP_SHARE == (int)ALERT_DROP_SHARE,
	       "the same metrics");

struct record_of_flow {
	struct netobs *ctx;
	const struct netobs_flow *flow;
	/* The end of the interval: CLOCK_BOOTTIME, and since 1970. */
	int64_t boot_ns, time_ns;
};

/* Drops are all of the flow, also where a record has some of its packets only. */
static uint64_t packets_of(const struct netobs_flow *flow)
{
	const bool is_sampled = flow->has & NETOBS_HAS_SAMPLING &&
				flow->sampling_mode == NETOBS_SAMPLE_PACKETS;

	return flow->packets * (is_sampled ? flow->sampling : 1);
}

static struct flow_sample sample_of(const struct record_of_flow *record)
{
	const struct netobs_flow *flow = record->flow;
	struct flow_sample sample = {
		.tuple = { .src_port = flow->src_port,
			   .dst_port = flow->has & NETOBS_HAS_PORTS ?
					       flow->dst_port :
					       (uint16_t)(flow->icmp_type << 8 |
							  flow->icmp_code),
			   .proto = flow->proto },
		.netns = flow->n_points ? flow->points[0].netns_inode : 0,
		.packets = packets_of(flow),
		.dropped = flow->has & NETOBS_HAS_DROPS ? flow->drop_packets : 0,
		.boot_ns = record->boot_ns,
	};

	memcpy(sample.tuple.src, flow->src, sizeof(sample.tuple.src));
	memcpy(sample.tuple.dst, flow->dst, sizeof(sample.tuple.dst));
	return sample;
}

static void fill_flow_ends(const struct netobs_flow *flow,
			   struct netobs_alert *alert)
{
	const enum server_end end =
		server_of_flow(flow) ?:
			server_by_port(flow->src, flow->src_port, flow->dst,
				       flow->dst_port);
	const bool is_answer = end == SERVER_SOURCE;

	memcpy(alert->client, is_answer ? flow->dst : flow->src,
	       sizeof(alert->client));
	memcpy(alert->server, is_answer ? flow->src : flow->dst,
	       sizeof(alert->server));
	alert->client_port = is_answer ? flow->dst_port : flow->src_port;
	alert->server_port = is_answer ? flow->src_port : flow->dst_port;
	alert->way = is_answer ? NETOBS_ALERT_TO_CLIENT : NETOBS_ALERT_TO_SERVER;
	alert->protocol = flow->proto;
}

static void fill_flow_place(const struct netobs_flow *flow,
			    struct netobs_alert *alert)
{
	const struct netobs_point *point = flow->points;

	if (!flow->n_points)
		return;
	alert->ifindex = point->ifindex;
	alert->netns_inode = point->netns_inode;
	snprintf(alert->interface, sizeof(alert->interface), "%s",
		 point->name ?: "");
}

/* If both ends are sockets of this host, report the server's process. */
static void fill_flow_process(const struct netobs_flow *flow,
			      struct netobs_alert *alert)
{
	const bool is_answer = alert->way == NETOBS_ALERT_TO_CLIENT;
	const struct netobs_process *server = is_answer ? flow->src_process :
							  flow->dst_process;
	const struct netobs_process *client = is_answer ? flow->dst_process :
							  flow->src_process;
	const struct netobs_process *process = server ?: client;

	if (!process)
		return;
	alert->record.has |= NETOBS_ALERT_HAS_PROCESS;
	alert->pid = process->pid;
	memcpy(alert->process, process->command, sizeof(alert->process));
}

static void report_flow_alert(const struct flow_alert *of, void *user)
{
	const struct record_of_flow *record = user;
	struct netobs *ctx = record->ctx;
	struct alert_entry *entry = of->entry;
	struct netobs_alert alert = {
		.record = { .sz = sizeof(alert),
			    .type = NETOBS_RECORD_ALERT,
			    .time_ns = record->time_ns },
		.metric = (uint8_t)entry->spec.metric,
		.value = of->value,
		.threshold = entry->spec.threshold,
		.hits = of->hits,
		.start_ns = record->flow->start_ns,
		.conversation_id = record->flow->has & NETOBS_HAS_CONVERSATION ?
					   record->flow->conversation_id :
					   0,
	};

	context_name_rule(entry, &alert);
	fill_flow_ends(record->flow, &alert);
	fill_flow_place(record->flow, &alert);
	fill_flow_process(record->flow, &alert);
	context_pass_alert(ctx, entry, &alert);
}

void context_on_flow(const struct netobs_record *passed, void *user)
{
	const struct netobs_flow *flow = (const void *)passed;
	struct netobs *ctx = user;
	const struct clock *clock = &ctx->pipeline.clock;
	const int64_t boot_ns = ctx->pipeline.flip_ns;
	const struct record_of_flow record = {
		.ctx = ctx,
		.flow = flow,
		.boot_ns = boot_ns,
		.time_ns = clock_to_wall(clock, clock_to_stamp(clock, boot_ns)),
	};

	if (flow_alerts_are_due(ctx->alert_set, flow->has & NETOBS_HAS_DROPS)) {
		const struct flow_sample sample = sample_of(&record);

		flow_alerts_look(&ctx->flow_alerts, ctx->alert_set, &sample,
				 report_flow_alert, (void *)&record);
	}
	if (context_taker(&ctx->opts, NETOBS_RECORD_FLOW))
		ctx->opts.on_record(passed, ctx->opts.user);
}
