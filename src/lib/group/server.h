/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Determines which end of a flow is the server's. */
#ifndef NETOBS_GROUP_SERVER_H
#define NETOBS_GROUP_SERVER_H

#include <stdint.h>

#include "keys.h"

struct netobs_flow;

enum { SERVERS = 4096 };

/* Hosts that accepted a connection, by a hash: some are overwritten. */
struct servers {
	uint64_t hashes[SERVERS];
};

/**
 * Learn from @flow, and determine its end that belongs to the server.
 */
enum flow_end server_find(struct servers *servers,
			  const struct netobs_flow *flow);

#endif
