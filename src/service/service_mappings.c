/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The mappings of a service, as its control socket answers. */
#include "service.h"

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

int service_mappings_add(struct json *json, uint64_t *cursor,
			 const struct netobs_mapping_query *query, void *user)
{
	const struct service *service = user;
	struct answered answered = { json, query };

	return netobs_mappings(service->ctx, cursor, add_mapping, &answered);
}
