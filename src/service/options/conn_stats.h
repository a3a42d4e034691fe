/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Statistics of the table of connections; without rtt, there are none. */
#ifndef NETOBS_SERVICE_OPTIONS_CONN_STATS_H
#define NETOBS_SERVICE_OPTIONS_CONN_STATS_H

#include <netobs/netobs.h>

#include "base/json.h"

/* Add them as the member "connections" of an object. */
void conn_stats_json(struct json *json, const struct netobs *ctx);

#endif
