/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The public life of a context, and its one file descriptor. */
#include "context.h"

#include "base/options.h"
#include "base/privilege.h"
#include "base/util.h"
#include "engine/connections.h"

#include <errno.h>
#include <netobs/probe.h>

enum {
	WORK_MS = 4,	   /* time of draining in one call */
	ATTACHING_MS = 20, /* between two looks at a thread that ends late */
};

static loop_fn on_drain_timer, on_notice, on_sockets, on_nat, on_containers;
static const struct life_ops life_ops;

static int open_context_loop(struct netobs *ctx)
{
	int err = life_open(&ctx->life);

	/* The clock of the flows' times: a suspended host drains on waking up. */
	return err ? err :
		     loop_add_timer(&ctx->life.loop, CLOCK_BOOTTIME,
				    on_drain_timer, ctx, &ctx->timer);
}

static int init_context(struct netobs *ctx, const struct netobs_opts *opts)
{
	int err = opts ? sized_check(opts, sizeof(*opts), &ctx->life.log) : 0;

	err = err ?: context_check_options(&ctx->opts, &ctx->life.log);
	host_init(&ctx->host, &ctx->life.log);
	err = err ?: context_make_filter(&ctx->opts, &ctx->life.log, &ctx->filter);
	err = err ?: context_keep_persist(&ctx->opts, &ctx->persist);
	err = err ?: copy_optional(ctx->opts.container_root, &ctx->container_root);
	ctx->host.is_filtered = ctx->filter;
	ctx->host.looks_beyond = !(ctx->opts.flags & NETOBS_PER_INTERFACE);
	if (!err)
		err = observation_init(&ctx->observation, &ctx->host,
				       ctx->opts.interfaces, ctx->opts.exclude);
	return err ?: open_context_loop(ctx);
}

void context_forget_callers(struct netobs_opts *opts)
{
	opts->interfaces = NULL;
	opts->exclude = NULL;
	opts->filter = NULL;
	opts->rules = NULL;
	opts->error = NULL;
	opts->persist = NULL;
	opts->container_root = NULL;
}

int netobs_new(const struct netobs_opts *opts, struct netobs **ret_ctx)
{
	struct netobs *ctx;
	char(*error)[NETOBS_ERROR_MAX];
	int err;

	if (!ret_ctx)
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->pinned = PINNED_NONE;
	context_copy_options(opts, &ctx->opts);
	context_set_sampling(ctx, &ctx->opts);
	life_init(&ctx->life, &life_ops, ctx->opts.on_log, ctx->opts.user);
	ctx->life.source = &ctx->source;
	ctx->source.context = ctx;
	err = init_context(ctx, opts);
	error = ctx->opts.error;
	context_forget_callers(&ctx->opts);
	return life_made(&ctx->life, "a context", err, error, ret_ctx);
}

static void free_context(void *object)
{
	struct netobs *ctx = object;

	sink_source_release(&ctx->source);
	context_abandon_change(ctx);
	if (context_leaves(ctx))
		context_leave(ctx);
	observation_done(&ctx->observation);
	containers_done(&ctx->containers);
	host_done(&ctx->host);
	context_close_alerts(ctx);
	context_close_mappings(ctx);
	features_close(&ctx->features);
	pipeline_done(&ctx->pipeline);
	container_names_close(ctx->names);
	pinned_close(&ctx->pinned);
	filter_free(ctx->filter);
	free(ctx->persist);
	free(ctx->container_root);
}

/* The ring buffer is readable all the time, but wakes only when it fills up. */
static int listen_to_sockets(struct netobs *ctx)
{
	const struct who *who = &ctx->features.who;

	return who_is_on(who) ?
		       loop_watch(&ctx->life.loop, owners_fd(&who->owners),
				  EPOLLIN | EPOLLET, on_sockets, ctx) :
		       0;
}

static int listen_to_nat(struct netobs *ctx)
{
	const struct translations *translations = &ctx->features.translations;
	const int fds[] = { nat_fd(&translations->nat),
			    connects_fd(&translations->sockets.connects) };
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			err = loop_watch(&ctx->life.loop, fds[i],
					 EPOLLIN | EPOLLET, on_nat, ctx);
	return err;
}

static int open_containers(struct netobs *ctx)
{
	int err;

	if (!(ctx->opts.flags & NETOBS_CONTAINERS))
		return 0;
	err = containers_init(&ctx->containers, &ctx->host);
	return err ? err :
		     loop_watch(&ctx->life.loop, containers_fd(&ctx->containers),
				EPOLLIN, on_containers, ctx);
}

static int open_names(struct netobs *ctx)
{
	return ctx->opts.flags & NETOBS_CONTAINER_NAMES ?
		       container_names_open(ctx->container_root, &ctx->life.loop,
					    &ctx->life.log, &ctx->names) :
		       0;
}

/* Watch for one notice of the programs: each time anew (EPOLLONESHOT). */
static int listen_to_notices(struct netobs *ctx)
{
	return loop_watch(&ctx->life.loop, store_notices_fd(&ctx->pipeline.store),
			  EPOLLIN | EPOLLONESHOT, on_notice, ctx);
}

static int64_t interval_ns(const struct netobs *ctx)
{
	return ctx->opts.interval_ms * NSEC_PER_MSEC;
}

/* The time of the next work; never 0, which would disarm the timer. */
static int64_t next_ns(const struct netobs *ctx)
{
	uint32_t wait_ms = pipeline_wait_ms(&ctx->pipeline);
	const int64_t at_once = 1;

	if (pipeline_is_idle(&ctx->pipeline) && ctx->is_behind)
		wait_ms = PIPELINE_BEHIND_MS;
	if (wait_ms)
		return clock_boot_ns() + wait_ms * NSEC_PER_MSEC;
	if (!pipeline_is_idle(&ctx->pipeline))
		return at_once;
	if (ctx->life.state != LIFE_RUNNING)
		return observation_is_detached(&ctx->observation) ?
			       at_once :
			       max_u64(ctx->observation.leave_ns,
				       clock_boot_ns() +
					       ATTACHING_MS * NSEC_PER_MSEC);
	/* If more flows come than max_flows, draining must not overload the host. */
	if (ctx->is_early_wanted)
		return min_u64(ctx->due_ns,
			       max_u64(ctx->pipeline.rested_ns, at_once));
	return ctx->due_ns;
}

static void arm_timer(const struct netobs *ctx)
{
	loop_set_timer(ctx->timer, next_ns(ctx));
}

static int load_flow_programs(void *arg, uint16_t netns, enum link_kind link,
			      bool is_next, struct programs *ret_programs)
{
	struct netobs *ctx = arg;
	const struct rate rate = context_rate(&ctx->opts);

	if (is_next && context_take_loaded(ctx, netns, link, ret_programs))
		return 0;
	return store_load_programs(&ctx->pipeline.store,
				   is_next ? ctx->next_filter : ctx->filter,
				   is_next ? &ctx->next_rate : &rate, netns,
				   link, ret_programs);
}

static void follow_netns(void *arg, uint16_t netns, uint32_t former,
			 uint32_t inode)
{
	const struct netobs *ctx = arg;

	store_follow_leaving(&ctx->pipeline.store, netns, former, inode);
}

int context_open_pipeline(struct netobs *ctx,
			  const struct pipeline_options *options,
			  const struct host *host)
{
	struct pipeline *pipeline = &ctx->pipeline;
	const struct log *log = &ctx->life.log;
	int err = pipeline_open(pipeline, options, log);

	if (!err)
		err = features_open(&ctx->features, pipeline, &ctx->opts,
				    ctx->names, host, log);
	return err ?: pipeline_init(pipeline, host);
}

static int start_context(void *owner)
{
	struct netobs *ctx = owner;
	const struct program_source source = {
		.load = load_flow_programs,
		.follow = follow_netns,
		.ctx = ctx,
		.origins = &ctx->pipeline.store.origins,
	};
	const struct netobs_opts *opts = &ctx->opts;
	const struct attach_options attach =
		attach_options_of(&ctx->life.log, opts->disable_features,
				  opts->direction, opts->attach_order);
	struct pipeline_options pipeline_options;
	int err;

	if (!attach.use_tcx && !attach.use_clsact) {
		log_error(&ctx->life.log,
			  "tcx and clsact are both disabled: there is no way to attach");
		return -ENOTSUP;
	}

	err = context_open_pinned(ctx);
	err = err ?: open_names(ctx);
	pipeline_options = context_pipeline_options(ctx);
	if (!err)
		err = context_open_pipeline(ctx, &pipeline_options, &ctx->host);
	err = err ?: context_adopt_slots(ctx);
	err = err ?: context_open_alerts(ctx);
	err = err ?: context_open_mappings(ctx);
	if (err)
		return err;
	/*
	 * All interfaces that are there are observed from the same moment on; those that an
	 * earlier process has left are observed all the time.
	 */
	if (!ctx->pinned.had_links)
		store_pause(&ctx->pipeline.store, true);
	err = observation_start(&ctx->observation, &source, &attach,
				ctx->pinned.links);
	err = err ?: listen_to_notices(ctx);
	err = err ?: listen_to_sockets(ctx);
	err = err ?: listen_to_nat(ctx);
	err = err ?: open_containers(ctx);
	err = err ?: observation_watch(&ctx->observation, &ctx->life.loop);
	if (err) {
		context_undo_start(ctx);
		return err;
	}
	store_pause(&ctx->pipeline.store, false);
	context_list_pinned(ctx);
	context_start_mappings(ctx);
	ctx->life.state = LIFE_RUNNING;
	ctx->due_ns = clock_boot_ns() + interval_ns(ctx);
	arm_timer(ctx);
	log_info(&ctx->life.log, "observing %u interface%s",
		 ctx->observation.n_attached,
		 ctx->observation.n_attached == 1 ? "" : "s");
	return 0;
}

/* @return the longest time after its last packet in which a flow may be reported */
static int64_t longest_ns(const struct netobs *ctx)
{
	return max_u64(ctx->opts.active_timeout_ms, ctx->opts.idle_timeout_ms) *
		       NSEC_PER_MSEC +
	       2 * interval_ns(ctx);
}

/* Names outlive their interfaces until no flow can refer to them. */
static void sweep_interfaces(struct netobs *ctx)
{
	host_sweep(&ctx->host, ctx->pipeline.flip_ns - longest_ns(ctx));
}

/* Keep connections that have ended for a while, as netobs_connections() says. */
static void sweep_connections(struct netobs *ctx)
{
	connections_sweep(
		&ctx->pipeline.store.connections, (uint64_t)clock_boot_ns(),
		max_u64(longest_ns(ctx), CONTEXT_ENDED_S * NSEC_PER_SEC));
}

static void begin_drain(struct netobs *ctx, int64_t now)
{
	bool is_due = now >= ctx->due_ns;

	pipeline_begin(&ctx->pipeline, is_due ? MERGE_INTERVAL : MERGE_EARLY,
		       now);
	ctx->is_early_wanted = false;
	listen_to_notices(ctx);
	if (!is_due)
		return;
	ctx->due_ns += interval_ns(ctx);
	if (ctx->due_ns <= now) /* late by more than an interval: suspended */
		ctx->due_ns = now + interval_ns(ctx);
}

/* Read from logs that fill up; this may take several calls. */
static void relieve_context(struct netobs *ctx)
{
	enum pipeline_relief relief = pipeline_relieve(&ctx->pipeline);

	/*
	 * Known flows, and others while there is room, are read until the drain begins.
	 * A log that begins with a record that has no room can wait for it; others give notice.
	 */
	ctx->is_behind =
		ctx->pipeline.store.is_growing ||
		(relief != PIPELINE_RELIEVED && !ctx->pipeline.is_refusing &&
		 logs_are_filling(&ctx->pipeline.logs));
	if (!ctx->is_behind)
		listen_to_notices(ctx);
	if (relief == PIPELINE_FULL)
		ctx->is_early_wanted = true;
}

static void after_drain(struct netobs *ctx)
{
	observation_end_shift(&ctx->observation, ctx->pipeline.flip_ns);
	sweep_interfaces(ctx);
	sweep_connections(ctx);
	observation_look(&ctx->observation);
	containers_look(&ctx->containers);
	/* Notices may have arrived, or room become free, meanwhile: check in the next call. */
	ctx->is_early_wanted = false;
	ctx->is_behind = true;
}

static bool is_drain_due(const struct netobs *ctx, int64_t now)
{
	return now >= ctx->due_ns ||
	       (ctx->is_early_wanted && now >= ctx->pipeline.rested_ns);
}

/* A slice of a drain, at least a step until @end_ns. False: it is over. */
static bool work_until(struct netobs *ctx, int64_t end_ns)
{
	while (pipeline_step(&ctx->pipeline))
		if (pipeline_wait_ms(&ctx->pipeline) || clock_boot_ns() >= end_ns)
			return true;
	return false;
}

static int on_drain_timer(void *arg, int fd)
{
	struct netobs *ctx = arg;
	int64_t now = clock_boot_ns();

	(void)fd;
	if (ctx->is_behind)
		relieve_context(ctx);
	if (!pipeline_is_idle(&ctx->pipeline)) {
		if (!work_until(ctx, now + WORK_MS * NSEC_PER_MSEC) &&
		    ctx->life.state == LIFE_RUNNING)
			after_drain(ctx);
	} else if (ctx->life.state == LIFE_RUNNING && is_drain_due(ctx, now)) {
		begin_drain(ctx, now);
	}
	arm_timer(ctx);
	return 0;
}

static int on_notice(void *arg, int fd)
{
	struct netobs *ctx = arg;

	(void)fd;
	if (ctx->life.state != LIFE_RUNNING) /* the last drain reads the rest */
		return 0;
	relieve_context(ctx);
	if (pipeline_is_idle(&ctx->pipeline))
		arm_timer(ctx);
	return 0;
}

static int on_sockets(void *arg, int fd)
{
	struct netobs *ctx = arg;

	(void)fd;
	/* Watching again triggers if it is still readable (EPOLLET). */
	return owners_read(&ctx->features.who.owners) ? listen_to_sockets(ctx) :
							0;
}

static int on_nat(void *arg, int fd)
{
	struct netobs *ctx = arg;

	(void)fd;
	translations_read(&ctx->features.translations);
	return 0;
}

static int on_containers(void *arg, int fd)
{
	struct netobs *ctx = arg;

	(void)fd;
	containers_collect(&ctx->containers);
	return 0;
}

static void stop_context(void *owner)
{
	struct netobs *ctx = owner;

	if (context_leaves(ctx)) {
		pipeline_leave(&ctx->pipeline);
		context_leave(ctx);
	} else {
		store_pause(&ctx->pipeline.store, true);
		observation_detach(&ctx->observation);
	}
	ctx->is_behind = false;
}

/* Complete the drain that is under way, then do the last one. */
static void go_on_stopping(struct netobs *ctx)
{
	if (!pipeline_is_idle(&ctx->pipeline))
		return;
	if (ctx->pipeline.mode != MERGE_FINAL)
		pipeline_begin(&ctx->pipeline, MERGE_FINAL, clock_boot_ns());
	else if (observation_is_detached(&ctx->observation))
		ctx->life.state = LIFE_STOPPED;
	arm_timer(ctx);
}

/* @return records, alerts and mappings delivered since the start */
static uint64_t records_of(const struct netobs *ctx)
{
	return ctx->pipeline.merge.records + ctx->alerts_delivered +
	       ctx->mappings.n_reported;
}

static void begin_dispatch(void *owner)
{
	struct netobs *ctx = owner;

	ctx->records = records_of(ctx);
}

static int step_context(void *owner)
{
	struct netobs *ctx = owner;

	context_go_on_changing(ctx);
	if (ctx->life.state == LIFE_STOPPING)
		go_on_stopping(ctx);
	context_read_alerts(ctx);
	ctx->life.delivered = (int)(records_of(ctx) - ctx->records);
	return 0;
}

/* ---- The public life ----------------------------------------------------------------- */

static const struct life_ops life_ops = {
	.start = start_context,
	.stop = stop_context,
	.begin = begin_dispatch,
	.step = step_context,
	.free = free_context,
	.privileges = PRIVILEGE_ALL,
};

bool is_context(const struct netobs *ctx)
{
	return life_as(ctx, &life_ops);
}

int netobs_drain(struct netobs *ctx)
{
	int err = is_context(ctx) ? life_check(&ctx->life) : -EINVAL;
	uint64_t before;

	if (err)
		return err;
	before = ctx->pipeline.merge.records;
	pipeline_finish(&ctx->pipeline);
	pipeline_begin(&ctx->pipeline,
		       ctx->life.state == LIFE_RUNNING ? MERGE_ALL : MERGE_FINAL,
		       clock_boot_ns());
	ctx->is_early_wanted = false;
	pipeline_finish(&ctx->pipeline);
	context_release_alerts(ctx);
	listen_to_notices(ctx);
	if (ctx->life.state == LIFE_RUNNING) /* as in after_drain() */
		relieve_context(ctx);
	arm_timer(ctx);
	return ctx->pipeline.merge.records - before;
}

/* The interval that is under way ends when the new length of it is over. */
void context_set_interval(struct netobs *ctx, const struct netobs_opts *opts)
{
	int64_t began_ns = ctx->due_ns - interval_ns(ctx);

	ctx->opts.interval_ms = opts->interval_ms;
	ctx->opts.active_timeout_ms = opts->active_timeout_ms;
	ctx->opts.idle_timeout_ms = opts->idle_timeout_ms;
	context_set_times(opts, &ctx->pipeline.merge.options);
	ctx->due_ns = max_u64(began_ns + interval_ns(ctx), clock_boot_ns());
	arm_timer(ctx);
}
