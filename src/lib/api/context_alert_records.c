// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Alerts: of rules about connections, as programs report them, and of rules about flows, whose records are
 * compared with them before they are passed on. While a drain has its translations wait, an alert that may be
 * about one of these waits, too, and those behind it: at the end, each has the id of its conversation.
 */
#include "context.h"

#include "base/conversation.h"
#include "base/util.h"

#include <netobs/alert.h>
#include <netobs/flow.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)NETOBS_ALERT_METRICS == (int)ALERT_RULE_METRICS &&
		       (int)NETOBS_ALERT_DROPS == (int)ALERT_DROPS &&
		       (int)NETOBS_ALERT_DROP_SHARE == (int)ALERT_DROP_SHARE,
	       "the same metrics");

/* ---- What an alert says of its rule -------------------------------------------------- */

static void name_rule(const struct alert_entry *entry, struct netobs_alert *alert)
{
	alert->among = entry->spec.among;
	memcpy(alert->name, entry->name, sizeof(alert->name));
	memcpy(alert->rule, entry->text, sizeof(alert->rule));
}

static void pass_alert(struct netobs *ctx, struct alert_entry *entry,
		       const struct netobs_alert *alert)
{
	entry->delivered++;
	ctx->alerts_delivered++;
	ctx->opts.on_record(&alert->record, ctx->opts.user);
}

static void set_process(struct netobs_alert *alert, uint32_t pid,
			const char *command)
{
	alert->record.has |= NETOBS_ALERT_HAS_PROCESS;
	alert->pid = pid;
	memcpy(alert->process, command, sizeof(alert->process));
}

/* ---- Connections --------------------------------------------------------------------- */

/* Alerts that wait: about a megabyte, which is freed then. */
enum { HELD_MAX = 8192 };

/* @return the threshold that the sample exceeded */
static uint64_t threshold_of(const struct alert_spec *spec,
			     const struct alert_event *event)
{
	uint64_t baseline = alert_value(spec->metric, event->baseline);

	if (!spec->is_ratio)
		return spec->threshold;
	return (uint64_t)((__uint128_t)baseline * spec->threshold >>
			  ALERT_RATIO_SHIFT);
}

/* If both ends are sockets of this host, report the server's process. */
static bool find_process(const struct netobs *ctx,
			 const struct alert_event *event,
			 struct netobs_process *ret_process)
{
	const int64_t now_ns =
		clock_to_stamp(&ctx->pipeline.clock, clock_boot_ns());
	const bool is_server_source = event->client & 1;

	return context_find_process(ctx, &event->key, is_server_source, now_ns,
				    ret_process) ||
	       context_find_process(ctx, &event->key, !is_server_source, now_ns,
				    ret_process);
}

/* The process may end before the alert is delivered. */
static void note_process(struct netobs *ctx, struct held_alert *alert)
{
	struct who *who = &ctx->features.who;
	struct netobs_process process;

	if (!who_is_on(who))
		return;
	if (!find_process(ctx, &alert->event, &process)) {
		who_glance(who);
		if (!find_process(ctx, &alert->event, &process))
			return;
	}
	alert->has_process = true;
	alert->pid = process.pid;
	memcpy(alert->process, process.command, sizeof(alert->process));
}

static void fill_connection(const struct netobs *ctx,
			    const struct alert_event *event,
			    struct netobs_alert *alert)
{
	const struct flow_key *key = &event->key;
	const struct netif *netif =
		host_find(&ctx->host, key->netns, key->ifindex);
	const struct ip_addr *ends[] = { &key->src, &key->dst };
	const uint16_t ports[] = { key->src_port, key->dst_port };
	const int client = event->client & 1;

	memcpy(alert->client, ends[client]->bytes, sizeof(alert->client));
	memcpy(alert->server, ends[!client]->bytes, sizeof(alert->server));
	alert->client_port = ports[client];
	alert->server_port = ports[!client];
	alert->protocol = key->proto;
	alert->way = event->dir == client ? NETOBS_ALERT_TO_SERVER :
					    NETOBS_ALERT_TO_CLIENT;
	alert->start_ns =
		clock_to_wall(&ctx->pipeline.clock, (int64_t)event->born_ns);
	if (!netif) /* of a file: interfaces are none of this host */
		return;
	alert->ifindex = key->ifindex;
	alert->netns_inode = ctx->host.netns[key->netns].inode;
	snprintf(alert->interface, sizeof(alert->interface), "%s", netif->name);
}

/* The rule in use, or one that was replaced while the event was in the ring buffer. */
static struct alert_entry *find_alert_entry(const struct netobs *ctx,
					    const struct alert_event *event)
{
	return alert_set_find(ctx->alert_set, event->slot, event->life) ?:
		       alert_set_find(ctx->alert_set_before, event->slot,
				      event->life);
}

static void deliver_alert(struct netobs *ctx, const struct held_alert *from,
			  uint64_t conversation)
{
	const struct alert_event *event = &from->event;
	struct alert_entry *entry = find_alert_entry(ctx, event);
	struct netobs_alert alert = {
		.record = { .sz = sizeof(alert),
			    .type = NETOBS_RECORD_ALERT,
			    .time_ns = clock_to_wall(&ctx->pipeline.clock,
						     (int64_t)event->time_ns) },
		.metric = event->metric,
		.value = alert_value(event->metric, event->value),
		.baseline = alert_value(event->metric, event->baseline),
		.hits = event->hits,
		.conversation_id = conversation,
	};

	if (!entry) /* there is none: set_alerts() has read those of earlier rules */
		return;
	if (event->baseline)
		alert.record.has |= NETOBS_ALERT_HAS_BASELINE;
	else
		alert.baseline = 0;
	alert.threshold = threshold_of(&entry->spec, event);
	name_rule(entry, &alert);
	fill_connection(ctx, event, &alert);
	if (from->has_process)
		set_process(&alert, from->pid, from->process);
	pass_alert(ctx, entry, &alert);
}

/* ---- Alerts that wait ----------------------------------------------------------------- */

/*
 * Find the id of the conversation that breaks a rule; 0: it is not known, or there is no NETOBS_NAT.
 *
 * @return false: it is not known before the drain has ended
 */
static bool find_conversation(struct netobs *ctx,
			      const struct alert_event *event, uint64_t *ret_id)
{
	const struct flow_key *key = &event->key;
	const bool is_turned = event->client & 1;
	const struct flow_entry entry = {
		.key = { .src = is_turned ? key->dst : key->src,
			 .dst = is_turned ? key->src : key->dst,
			 .src_port = is_turned ? key->dst_port : key->src_port,
			 .dst_port = is_turned ? key->src_port : key->dst_port,
			 .proto = key->proto,
			 .netns = key->netns,
			 .ifindex = key->ifindex },
		.tally = { .first_ns = event->born_ns, .last_ns = event->time_ns },
	};

	*ret_id = 0;
	return !ctx->mappings.table ||
	       !conversation_at(&ctx->features.translations, &entry, ret_id);
}

void context_release_alerts(struct netobs *ctx)
{
	struct held_alerts *held = &ctx->held_alerts;

	for (uint32_t i = 0; i < held->n; i++) {
		uint64_t conversation = 0;

		if (!translations_wait(&ctx->features.translations))
			find_conversation(ctx, &held->list[i].event,
					  &conversation);
		deliver_alert(ctx, &held->list[i], conversation);
	}
	free(held->list);
	*held = (struct held_alerts){ 0 };
}

/* @return false: there is no room */
static bool hold_alert(struct held_alerts *held, const struct held_alert *alert)
{
	if (held->n == HELD_MAX ||
	    !array_reserve(&held->list, held->n, &held->capacity,
			   sizeof(*alert), 64))
		return false;
	held->list[held->n++] = *alert;
	return true;
}

void context_on_alert(void *arg, const struct alert_event *event)
{
	struct netobs *ctx = arg;
	struct held_alert alert = { .event = *event };
	uint64_t conversation = 0;
	bool is_known;

	note_process(ctx, &alert);
	/* Alerts are delivered in the order in which they were reported. */
	is_known = !ctx->held_alerts.n &&
		   find_conversation(ctx, event, &conversation);
	if (!is_known && hold_alert(&ctx->held_alerts, &alert))
		return;
	context_release_alerts(ctx);
	deliver_alert(ctx, &alert, conversation);
}

void context_read_alerts(struct netobs *ctx)
{
	if (!translations_wait(&ctx->features.translations))
		context_release_alerts(ctx);
	if (ctx->life.state == LIFE_STOPPED)
		alerts_read_all(&ctx->alerts);
	else
		alerts_read(&ctx->alerts);
}

/* ---- Flows --------------------------------------------------------------------------- */

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

	if (process)
		set_process(alert, process->pid, process->command);
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

	name_rule(entry, &alert);
	fill_flow_ends(record->flow, &alert);
	fill_flow_place(record->flow, &alert);
	fill_flow_process(record->flow, &alert);
	pass_alert(ctx, entry, &alert);
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
