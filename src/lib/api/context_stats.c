/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Reports of a context on the packets, and on itself. */
#include "context.h"

#include "attach/hooks.h"
#include "base/options.h"
#include "base/util.h"
#include "nat/translations.h"
#include "who/sessions.h"

#include <errno.h>
#include <netobs/session.h>
#include <netobs/version.h>
#include <string.h>

int netobs_stats_get(const struct netobs *ctx, struct netobs_stats *ret_stats)
{
	struct netobs_stats stats;

	if (!is_context(ctx) || !ret_stats)
		return -EINVAL;
	stats.interfaces = ctx->observation.n_attached;
	stats.shadowed = observation_count_shadowed(&ctx->observation);
	pipeline_stats(&ctx->pipeline, &stats);
	return sized_fill(ret_stats, &stats, sizeof(stats));
}

static uint64_t count_lost(const struct connects *connects)
{
	return connects_lost(connects) + connects_missed(connects) +
	       connects_skipped(connects) + connects_skipped_udp(connects);
}

static void set_translations(const struct translations *translations,
			     struct netobs_engine_stats *stats)
{
	stats->translations = translations->table.known;
	stats->translations_refused = translations->table.refused;
	stats->translations_lost = nat_count(&translations->nat).lost +
				   translations->late +
				   count_lost(&translations->sockets.connects);
	stats->translations_ambiguous = translations->ambiguous;
}

static void set_mappings(const struct mappings *mappings,
			 const struct mapping_questions *questions,
			 struct netobs_engine_stats *stats)
{
	stats->mappings = mappings->active;
	stats->mappings_begun = mappings->n_begun;
	stats->mappings_ended = mappings->n_ended;
	stats->mappings_forgotten = mappings->n_forgotten;
	stats->mapping_lists_again = questions->n_again;
	stats->mapping_lists_incomplete = questions->n_incomplete;
	stats->mapping_questions_again = questions->n_asked_again;
}

int netobs_engine_stats_get(const struct netobs *ctx,
			    struct netobs_engine_stats *ret_stats)
{
	struct netobs_engine_stats stats;
	struct program_runs runs;

	if (!is_context(ctx) || !ret_stats)
		return -EINVAL;
	runs = hooks_all_runs(&ctx->observation);
	stats = ctx->pipeline.engine_stats;
	stats.max_flows = ctx->pipeline.merge.options.max_flows;
	stats.programs = runs.programs;
	stats.kept = ctx->pipeline.store.kept;
	stats.program_runs = runs.runs;
	stats.program_ns = runs.ns;
	set_translations(&ctx->features.translations, &stats);
	set_mappings(&ctx->mappings, &ctx->questions, &stats);
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

static void set_crossings(const struct outcomes reported[2],
			  struct netobs_crossings ret_crossings[NETOBS_DIRECTIONS])
{
	struct outcomes both = reported[INGRESS];

	for (int i = 0; i < OUTCOMES; i++)
		count_add(&both.counts[i], &reported[EGRESS].counts[i]);
	ret_crossings[NETOBS_BOTH] = crossings_of(&both);
	ret_crossings[NETOBS_INGRESS] = crossings_of(&reported[INGRESS]);
	ret_crossings[NETOBS_EGRESS] = crossings_of(&reported[EGRESS]);
}

/* @return NULL instead of an empty name */
static const char *find_known_name(const char *name)
{
	return *name ? name : NULL;
}

static void report_interface(const struct netobs *ctx, const struct netns *netns,
			     const struct netif *netif,
			     void (*take)(const struct netobs_interface *interface,
					  void *user),
			     void *user)
{
	const struct cgroup_names *container =
		containers_find(&ctx->containers, netns, netif);
	struct netobs_interface interface = {
		.sz = sizeof(interface),
		.name = netif->name,
		.netns = netns->name,
		.ifindex = netif->ifindex,
		.netns_inode = netns->inode,
		.container_id = container ?
					find_known_name(container->container_id) :
					NULL,
		.pod_uid = container ? find_known_name(container->pod_uid) : NULL,
	};

	set_crossings(netif->reported, interface.crossed);
	take(&interface, user);
}

static bool is_observed(const struct netif *netif)
{
	return netif->hooks && netif->hooks->is_attached && !netif->gone_ns;
}

int netobs_interfaces(const struct netobs *ctx,
		      void (*take)(const struct netobs_interface *interface,
				   void *user),
		      void *user,
		      struct netobs_crossings ret_all[NETOBS_DIRECTIONS])
{
	struct netns *netns;

	if (!is_context(ctx) || !take)
		return -EINVAL;
	host_for_each_netif(&ctx->host, netns, netif)
		if (is_observed(netif))
			report_interface(ctx, netns, netif, take, user);
	if (ret_all)
		set_crossings(ctx->pipeline.reported, ret_all);
	return 0;
}

/* ---- Shares -------------------------------------------------------------------------- */

/* Observers of sessions get conversation IDs and names of containers from a context. */

/* Set the times by the clock of entries. A session older than its observer has no known start. */
static void fill_time(const struct netobs *ctx,
		      const struct netobs_session *session,
		      struct flow_tally *tally)
{
	const int64_t offset = ctx->pipeline.clock.wall_offset;
	const bool has_start = session->record.has & NETOBS_SESSION_HAS_START;

	tally->last_ns = (uint64_t)(session->end_ns - offset);
	tally->first_ns = has_start ? (uint64_t)(session->start_ns - offset) :
				      tally->last_ns;
}

int netobs_session_conversation(struct netobs *ctx,
				const struct netobs_session *session,
				uint64_t *ret_id)
{
	struct flow_entry entry = { 0 };

	if (!is_context(ctx) || !session || !ret_id)
		return -EINVAL;
	if (!ctx->mappings.table)
		return -ENOTSUP;
	memcpy(entry.key.src.bytes, session->local_addr,
	       sizeof(session->local_addr));
	memcpy(entry.key.dst.bytes, session->remote_addr,
	       sizeof(session->remote_addr));
	entry.key.src_port = session->local_port;
	entry.key.dst_port = session->remote_port;
	entry.key.proto = session->protocol;
	fill_time(ctx, session, &entry.tally);
	return conversation_of_socket(&ctx->features.translations, &entry,
				      session->netns_inode, session->pid, ret_id);
}

int netobs_sessions_share(struct netobs *sessions, const struct netobs *ctx)
{
	if (!sessions || !is_context(ctx))
		return -EINVAL;
	return ctx->names ? sessions_use_names(sessions, ctx->names) : -ENOENT;
}

/* ---- Version ------------------------------------------------------------------------- */

const char *netobs_version(void)
{
	return NETOBS_VERSION;
}

unsigned int netobs_version_number(void)
{
	return NETOBS_VERSION_NUMBER;
}
