// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "conn_stats.h"

#include <netobs/connection.h>

void conn_stats_json(struct json *json, const struct netobs *ctx)
{
	struct netobs_connection_stats stats = { .sz = sizeof(stats) };

	if (netobs_connection_stats_get(ctx, &stats))
		return;
	json_key_open(json, "connections", '{');
	json_key_u64(json, "used", stats.used);
	json_key_u64(json, "max", stats.capacity);
	json_key_u64(json, "memory", stats.memory);
	json_key_u64(json, "created", stats.created);
	json_key_open(json, "evicted", '{');
	json_key_u64(json, "half_open", stats.evicted_half_open);
	json_key_u64(json, "closed", stats.evicted_closed);
	json_key_u64(json, "idle", stats.evicted_idle);
	json_close(json, '}');
	json_key_u64(json, "refused_packets", stats.refused_packets);
	json_key_u64(json, "contended_packets", stats.contended_packets);
	json_close(json, '}');
}
