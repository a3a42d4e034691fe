/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The mappings of a service, as its control socket answers. */
#include "service.h"

#include <netinet/in.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/json.h"

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

static bool is_any(const uint8_t addr[16])
{
	static const uint8_t any[16] = { 0 };

	return !memcmp(addr, any, sizeof(any));
}

/* @return whether a search takes microseconds: the query has a whole tuple */
static bool is_whole(const struct netobs_mapping_query *query)
{
	return (query->protocol == IPPROTO_TCP || query->protocol == IPPROTO_UDP) &&
	       query->src_port && query->dst_port && !is_any(query->src) &&
	       !is_any(query->dst);
}

int service_mappings_add(struct json *json, uint64_t *cursor,
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
