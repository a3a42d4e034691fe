/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "features.h"

#include "base/util.h"

#include <netobs/probe.h>

enum {
	SOCKETS_MIN = 1 << 16,
	/* Sockets that ended are known until their packets have arrived: in so many intervals. */
	KEEP_INTERVALS = 3,
	KEEP_MIN_MS = 30000,
};

static void add(struct features *features, struct pipeline *pipeline,
		const struct flow_extra *extra)
{
	struct flow_extras *extras = &pipeline->options.merge.extras;

	extras->list = features->list;
	features->list[extras->n++] = *extra;
}

/* If connections are measured, flows have data for their health. */
static int add_health(struct features *features, struct pipeline *pipeline)
{
	int err;

	if (!pipeline->store.connections.n_buckets)
		return 0;
	err = health_init(&features->health, &pipeline->store.connections);
	add(features, pipeline, &features->health.extra);
	return err;
}

/* List sockets: one with packets of this generation is listed, or was reported when it ended. */
static bool step_who(uint32_t *ret_wait_ms, void *ctx)
{
	struct who *who = ctx;

	if (who->phase != WHO_AT_REST)
		return who_step(who, ret_wait_ms);
	who_begin(who);
	return true;
}

static int add_who(struct features *features, struct pipeline *pipeline,
		   const struct netobs_opts *opts, struct container_names *names,
		   const struct host *host, const struct log *log)
{
	const struct flow_extra extra = { .size = sizeof(struct who_ends),
					  .note = who_note,
					  .join = who_join,
					  .fill = who_fill,
					  .step = step_who,
					  .ctx = &features->who };
	const struct who_options options = {
		.disabled = opts->disable_features,
		.max = (uint32_t)max_u64(opts->max_flows, SOCKETS_MIN),
		.keep_ns = (KEEP_INTERVALS * (int64_t)opts->interval_ms +
			    KEEP_MIN_MS) *
			   NSEC_PER_MSEC,
		.names = names,
	};

	if (!(opts->flags & NETOBS_PROCESSES))
		return 0;
	add(features, pipeline, &extra);
	return who_init(&features->who, host, &options, log);
}

static bool is_disabled(const struct netobs_opts *opts, int feature)
{
	return opts->disable_features >> feature & 1;
}

static int add_translations(struct features *features, struct pipeline *pipeline,
			    const struct netobs_opts *opts,
			    const struct host *host, const struct log *log)
{
	const struct store *store = &pipeline->store;
	const struct translations_options options = {
		.host = host,
		.knows_zones = store->nat.has_zone,
		.joins_faces = !(opts->flags & NETOBS_PER_INTERFACE),
		.no_connect = is_disabled(opts, NETOBS_FEATURE_CONNECT),
		.tunnel_addrs_fd = store_tunnel_addrs_fd(store),
		.secret = &store->secret,
	};
	int err;

	if (!(opts->flags & NETOBS_NAT))
		return 0;
	err = translations_open(&features->translations, &store->maps,
				store->n_cpus, &options, log);
	add(features, pipeline, &features->translations.extra);
	return err;
}

static int add_drops(struct features *features, struct pipeline *pipeline,
		     const struct netobs_opts *opts, const struct host *host,
		     const struct log *log)
{
	const struct flow_drops_options options = {
		.per_interface = opts->flags & NETOBS_PER_INTERFACE,
		.no_reasons = is_disabled(opts, NETOBS_FEATURE_DROP_REASONS),
		.finds_spaces = !(opts->flags & NETOBS_PROCESSES),
		.nat = &features->translations.extra,
	};
	int err;

	if (!(opts->flags & NETOBS_DROPS))
		return 0;
	err = flow_drops_open(&features->drops, host, &options, log);
	add(features, pipeline, &features->drops.extra);
	return err;
}

int features_open(struct features *features, struct pipeline *pipeline,
		  const struct netobs_opts *opts, struct container_names *names,
		  const struct host *host, const struct log *log)
{
	int err = add_health(features, pipeline);

	err = err ?: add_who(features, pipeline, opts, names, host, log);
	/* After the processes: translations remove uncertain ones from records. */
	err = err ?: add_translations(features, pipeline, opts, host, log);
	/* After the translations, which give a flow further tuples. */
	return err ?: add_drops(features, pipeline, opts, host, log);
}

void features_close(struct features *features)
{
	health_done(&features->health);
	who_done(&features->who);
	translations_close(&features->translations);
	flow_drops_close(&features->drops);
}
