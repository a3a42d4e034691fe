// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Alerts of rules about connections, as programs report them. While a drain has its translations wait,
 * an alert that may be about one of these waits, too, and those behind it: at the end, each has the id of
 * its conversation.
 */
#include "context.h"

#include "base/util.h"

#include <netobs/alert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void fill_process(const struct held_alert *from, struct netobs_alert *alert)
{
	if (!from->has_process)
		return;
	alert->record.has |= NETOBS_ALERT_HAS_PROCESS;
	alert->pid = from->pid;
	memcpy(alert->process, from->process, sizeof(alert->process));
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
	context_name_rule(entry, &alert);
	fill_connection(ctx, event, &alert);
	fill_process(from, &alert);
	context_pass_alert(ctx, entry, &alert);
}

/* ---- Alerts that wait ----------------------------------------------------------------- */

void context_release_alerts(struct netobs *ctx)
{
	struct held_alerts *held = &ctx->held_alerts;

	for (uint32_t i = 0; i < held->n; i++) {
		uint64_t conversation = 0;

		if (!translations_wait(&ctx->features.translations))
			context_alert_conversation(ctx, &held->list[i].event,
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
		   context_alert_conversation(ctx, event, &conversation);
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
