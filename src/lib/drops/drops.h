/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An observer of drops that shares the programs of others. */
#ifndef NETOBS_DROPS_DROPS_H
#define NETOBS_DROPS_DROPS_H

#include "drop_feed.h"

struct netobs_drops;

/**
 * Have an observer take the drops of a feed, instead of loading programs of its own.
 *
 * @return 0; -EALREADY: it has been started, or has one
 */
int drops_join(struct netobs_drops *drops, struct drop_feed *feed);

#endif
