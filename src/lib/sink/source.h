/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A context as the sinks see it that are opened for it (netobs_sink_opts.context).
 * The list has the sinks until either side is freed.
 */
#ifndef NETOBS_SINK_SOURCE_H
#define NETOBS_SINK_SOURCE_H

#include <netobs/flow.h>

#include <stdint.h>

#include "base/life.h"

struct netobs_sink;

/* The place of a sink in the list. */
struct sink_link {
	struct netobs_sink *sink;
	struct sink_source *source; /* NULL: it is in no list */
	struct sink_link *next;
};

struct sink_source {
	const struct netobs *context;
	struct sink_link *links;
	uint32_t sampling;
	enum netobs_sampling sampling_mode;
};

/* @return NULL: @netobs is no context, or NULL */
static inline struct sink_source *sink_source_of(const struct netobs *netobs)
{
	return netobs ? ((const struct life *)netobs)->source : NULL;
}

/* The context is about to be freed. */
void sink_source_release(struct sink_source *source);

/* For sinks, when they are opened and closed. @link: with a sink */
void sink_source_add(struct sink_source *source, struct sink_link *link);
void sink_source_remove(struct sink_link *link);

#endif
