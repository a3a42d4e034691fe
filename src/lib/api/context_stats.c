/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a context reports about the packets, and about itself. */
#include "context.h"

#include "attach/hooks.h"
#include "base/count.h"
#include "base/sized.h"

#include <errno.h>
#include <string.h>

int netobs_stats_get(const struct netobs *ctx, struct netobs_stats *ret_stats)
{
	struct netobs_stats stats;

	if (!ctx || !ret_stats)
		return -EINVAL;
	stats.interfaces = ctx->observation.n_attached;
	stats.shadowed = observation_count_shadowed(&ctx->observation);
	pipeline_stats(&ctx->pipeline, &stats);
	return sized_fill(ret_stats, &stats, sizeof(stats));
}

int netobs_engine_stats_get(const struct netobs *ctx,
			    struct netobs_engine_stats *ret_stats)
{
	struct netobs_engine_stats stats;
	struct program_runs runs;

	if (!ctx || !ret_stats)
		return -EINVAL;
	runs = hooks_all_runs(&ctx->observation);
	stats = ctx->pipeline.engine_stats;
	stats.max_flows = ctx->pipeline.merge.options.max_flows;
	stats.programs = runs.programs;
	stats.kept = ctx->pipeline.store.kept;
	stats.program_runs = runs.runs;
	stats.program_ns = runs.ns;
	return sized_fill(ret_stats, &stats, sizeof(stats));
}

static struct netobs_count count_of(const struct count *count)
{
	return (struct netobs_count){ count->packets, count->bytes };
}

static struct netobs_crossings crossings_of(const struct outcomes *outcomes)
{
	const struct count *counts = outcomes->counts;
	struct netobs_crossings crossings = {
		.flows = count_of(&counts[OUTCOME_FLOW]),
		.filtered = count_of(&counts[OUTCOME_FILTERED]),
		.sampled_out = count_of(&counts[OUTCOME_SAMPLED_OUT]),
		.unparsed = count_of(&counts[OUTCOME_UNPARSED]),
		.lost = count_of(&counts[OUTCOME_LOST]),
	};

	for (int i = 0; i < OUTCOMES; i++)
		count_add(&crossings.seen, &counts[i]);
	return crossings;
}

/* NULL: that is not known. */
static const char *known(const char *name)
{
	return *name ? name : NULL;
}

static void report(const struct netobs *ctx, const struct netns *netns,
		   const struct netif *netif,
		   void (*take)(const struct netobs_interface *interface,
				void *user),
		   void *user)
{
	const struct cgroup_names *container =
		containers_find(&ctx->containers, netns, netif);
	const struct netobs_interface interface = {
		.sz = sizeof(interface),
		.name = netif->name,
		.netns = netns->name,
		.ifindex = netif->ifindex,
		.netns_inode = netns->inode,
		.crossed = { crossings_of(&netif->reported[0]),
			     crossings_of(&netif->reported[1]) },
		.container_id = container ? known(container->container_id) : NULL,
		.pod_uid = container ? known(container->pod_uid) : NULL,
	};

	take(&interface, user);
}

static bool is_observed(const struct netif *netif)
{
	return netif->hooks && netif->hooks->is_attached && !netif->gone_ns;
}

int netobs_interfaces(const struct netobs *ctx,
		      void (*take)(const struct netobs_interface *interface,
				   void *user),
		      void *user, struct netobs_crossings ret_all[2])
{
	const struct host *host;

	if (!ctx || !take)
		return -EINVAL;
	host = &ctx->host;
	for (uint32_t i = 0; i < host->n_netns; i++)
		for (uint32_t k = 0; k < host->netns[i].netifs.count; k++) {
			const struct netif *netif =
				&host->netns[i].netifs.items[k];

			if (is_observed(netif))
				report(ctx, &host->netns[i], netif, take, user);
		}
	for (int d = 0; ret_all && d < 2; d++)
		ret_all[d] = crossings_of(&ctx->pipeline.reported[d]);
	return 0;
}
