// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The drops that a context reads, for observers of drops. */
#include "context.h"

#include "drops/drop_feed.h"

#include <errno.h>
#include <netobs/drop.h>

int netobs_drops_share(struct netobs *drops, const struct netobs *ctx)
{
	struct drop_feed *feed;

	if (!drops || !is_context(ctx))
		return -EINVAL;
	feed = flow_drops_feed(&ctx->features.drops);
	return feed ? drops_join(drops, feed) : -ENOENT;
}
