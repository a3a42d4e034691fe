/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Translates the options of a context for its parts. */
#include "context.h"

#include "base/util.h"

#include <errno.h>
#include <netobs/probe.h>
#include <string.h>

_Static_assert((int)NETOBS_SAMPLE_FLOWS == (int)SAMPLE_FLOWS, "same order");

enum {
	INTERVAL_DEFAULT_MS = 5000,
	INTERVAL_MIN_MS = 10,
	IDLE_DEFAULT_MS = 15000,
	MAX_FLOWS_DEFAULT = 1 << 20,
};

void context_copy_options(const struct netobs_opts *opts,
			  struct netobs_opts *ret_opts)
{
	NETOBS_OPTS(netobs_opts, copy);

	if (opts)
		memcpy(&copy, opts, min_u64(opts->sz, sizeof(copy)));
	copy.sz = sizeof(copy);
	copy.interval_ms = copy.interval_ms ?: INTERVAL_DEFAULT_MS;
	copy.idle_timeout_ms = copy.idle_timeout_ms ?: IDLE_DEFAULT_MS;
	copy.max_flows = copy.max_flows ?: MAX_FLOWS_DEFAULT;
	copy.records = copy.records ?: 1 << NETOBS_RECORD_FLOW;
	if (copy.sampling == 1)
		copy.sampling = 0;
	*ret_opts = copy;
}

int context_check_options(const struct netobs_opts *opts, const struct log *log)
{
	const uint64_t flags = NETOBS_PER_INTERFACE | NETOBS_PROCESSES |
			       NETOBS_CONTAINERS | NETOBS_NAT | NETOBS_DROPS |
			       NETOBS_CONTAINER_NAMES;
	const uint64_t records = 1 << NETOBS_RECORD_FLOW |
				 1 << NETOBS_RECORD_ALERT |
				 1 << NETOBS_RECORD_MAPPING;

	if ((unsigned int)opts->direction >= NETOBS_DIRECTIONS)
		log_error(log, "direction: %u is none of enum netobs_direction",
			  opts->direction);
	else if (opts->attach_order > NETOBS_ATTACH_LAST)
		log_error(log, "attach_order: %u is not known",
			  opts->attach_order);
	else if (opts->sampling_mode > NETOBS_SAMPLE_FLOWS)
		log_error(log,
			  "sampling_mode: %u is none of enum netobs_sampling",
			  opts->sampling_mode);
	else if (opts->flags & ~flags)
		log_error(log, "flags: 0x%llx is not known",
			  (unsigned long long)(opts->flags & ~flags));
	else if (opts->records & ~records)
		log_error(log, "records: 0x%llx is not of a context",
			  (unsigned long long)(opts->records & ~records));
	else if (opts->rtt > 1)
		log_error(log, "rtt: %u is neither 0 nor 1", opts->rtt);
	else if (opts->max_connections > STORE_CONNECTIONS_MAX)
		log_error(log, "max_connections: %u is more than %d",
			  opts->max_connections, STORE_CONNECTIONS_MAX);
	else if (opts->interval_ms < INTERVAL_MIN_MS)
		log_error(log, "interval_ms: %u is less than %d",
			  opts->interval_ms, INTERVAL_MIN_MS);
	else
		return 0;
	return -EINVAL;
}

static bool is_other_text(const char *from, const char *to)
{
	return from != to && (!from || !to || strcmp(from, to) != 0);
}

#define FIXED(member) #member, from->member != to->member

int context_check_change(const struct netobs *ctx, const struct netobs_opts *to,
			 const struct log *log)
{
	const struct netobs_opts *from = &ctx->opts;
	const struct {
		const char *name;
		bool differs;
	} fixed[] = {
		{ FIXED(direction) },
		{ FIXED(rtt) },
		{ FIXED(flags) },
		{ FIXED(max_connections) },
		{ FIXED(min_bytes) },
		{ FIXED(max_flows) },
		{ FIXED(max_memory) },
		{ FIXED(disable_features) },
		{ FIXED(attach_order) },
		{ "on_record", from->on_record != to->on_record },
		{ "records", from->records != to->records },
		{ "on_interval", from->on_interval != to->on_interval },
		{ "on_log", from->on_log != to->on_log },
		{ "user", from->user != to->user },
		{ "persist", is_other_text(ctx->persist, to->persist) },
		{ "container_root",
		  is_other_text(ctx->container_root, to->container_root) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		if (!fixed[i].differs)
			continue;
		log_error(log, "%s: cannot be changed while observing",
			  fixed[i].name);
		return -ENOTSUP;
	}
	return 0;
}

struct rate context_rate(const struct netobs_opts *opts)
{
	return rate_of(opts->sampling, opts->sampling_mode);
}

void context_set_times(const struct netobs_opts *opts, struct merge_options *merge)
{
	merge->interval_ns = opts->interval_ms * NSEC_PER_MSEC;
	merge->active_timeout_ns = opts->active_timeout_ms * NSEC_PER_MSEC;
	merge->idle_timeout_ns = opts->idle_timeout_ms * NSEC_PER_MSEC;
}

void context_set_sampling(struct netobs *ctx, const struct netobs_opts *opts)
{
	ctx->opts.sampling = ctx->source.sampling = opts->sampling;
	ctx->opts.sampling_mode = ctx->source.sampling_mode = opts->sampling_mode;
}

struct pipeline_options context_pipeline_options(struct netobs *ctx)
{
	const struct netobs_opts *opts = &ctx->opts;
	struct pipeline_options options = {
		.store = {
			.opts = opts,
			.filter = ctx->filter,
			.rate = context_rate(opts),
			.has_alerts = opts->rtt &&
				      context_taker(opts, NETOBS_RECORD_ALERT),
			.pinned = ctx->pinned.dir_fd < 0 ? NULL : &ctx->pinned,
		},
		.merge = {
			.per_interface = opts->flags & NETOBS_PER_INTERFACE,
			.max_flows = opts->max_flows,
			.min_bytes = opts->min_bytes,
			.on_record = context_taker(opts, NETOBS_RECORD_FLOW),
			.user = opts->user,
		},
		.on_interval = opts->on_interval,
		.user = opts->user,
	};

	if (context_taker(opts, NETOBS_RECORD_ALERT) &&
	    opts->flags & NETOBS_DROPS) {
		options.merge.on_record = context_on_flow;
		options.merge.user = ctx;
	}
	context_set_times(opts, &options.merge);
	return options;
}
