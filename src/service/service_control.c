/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Answers requests of clients of the control socket. */
#include "service.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/json.h"
#include "base/text.h"
#include "service/control/control.h"

static void on_reload(void *user)
{
	service_reload(user);
}

static const char *on_metrics(void *user)
{
	struct service *service = user;

	service_refresh_metrics(service);
	return metrics_text(service->metrics);
}

static int on_reopen(void *user)
{
	struct service *service = user;

	return service_sinks_reopen(&service->sinks);
}

struct answered {
	struct json *json;
	const struct netobs_mapping_query *query;
};

static void add_mapping(const struct netobs_mapping *mapping, void *user)
{
	const struct answered *answered = user;
	char text[NETOBS_MAPPING_JSON_MAX];
	int len;

	if (!netobs_mapping_matches(mapping, answered->query))
		return;
	len = netobs_record_json(&mapping->record, text, sizeof(text));
	json_open(answered->json, '{');
	if (len > 0)
		json_members(answered->json, text + 1, (size_t)len - 2);
	json_close(answered->json, '}');
}

/* @return whether a search takes microseconds: the query has a whole tuple */
static bool is_whole(const struct netobs_mapping_query *query)
{
	return (query->protocol == IPPROTO_TCP || query->protocol == IPPROTO_UDP) &&
	       query->src_port && query->dst_port && !ip_is_any(query->src) &&
	       !ip_is_any(query->dst);
}

static int on_mappings(struct json *json, uint64_t *cursor,
		       const struct netobs_mapping_query *query, void *user)
{
	const struct service *service = user;
	struct answered answered = { json, query };
	int n;

	if (!*cursor && is_whole(query)) {
		n = netobs_mappings_find(service->ctx, query, add_mapping,
					 &answered);
		return n < 0 ? n : 0;
	}
	return netobs_mappings(service->ctx, cursor, add_mapping, &answered);
}

int service_open_control(struct service *service)
{
	static const struct control_ops ops = {
		.add_status = service_status_add,
		.metrics = on_metrics,
		.request_reload = on_reload,
		.reopen = on_reopen,
		.mappings = on_mappings,
	};
	const char *path = service->config->control;
	int r = control_open(path, &ops, service, &service->control);
	char text[640];

	if (r == 0)
		return 0;
	snprintf(text, sizeof(text), "there is no control socket %s: %s",
		 path ?: CONTROL_SOCKET, strerror(-r));
	service_log(path ? NETOBS_LOG_ERROR : NETOBS_LOG_WARNING, text, service);
	return path ? r : 0;
}
