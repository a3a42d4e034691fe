/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Adds a conversation to its edge: each of its packets once. */
#ifndef NETOBS_CLI_SERVICES_TALK_EDGE_H
#define NETOBS_CLI_SERVICES_TALK_EDGE_H

#include "talks.h"

/**
 * @param service    the end of the pair that is the service
 * @param reporting  of each reporter
 */
void talk_edge(struct talks *talks, struct talk *talk, uint8_t service,
	       const struct reporting *reporting, struct edge *ret_edge);

#endif
