/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a conversation adds to its edge: each of its packets once. */
#ifndef NETOBS_SERVICE_SERVICES_TALK_EDGE_H
#define NETOBS_SERVICE_SERVICES_TALK_EDGE_H

#include "talks.h"

/**
 * @param service    the end of the pair that is the service
 * @param is_merged  of each reporter: it reports a flow of several interfaces as one
 */
void talk_edge(const struct talks *talks, const struct talk *talk,
	       uint8_t service, const bool *is_merged, struct edge *ret_edge);

/** @return packets of all parts */
uint64_t talk_packets(const struct talks *talks, const struct talk *talk);

#endif
