/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The public life of a context, and its one file descriptor. */
#include "context.h"

#include "base/privilege.h"
#include "base/sized.h"
#include "base/util.h"

#include <errno.h>
#include <netobs/probe.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

enum {
	WORK_MS = 4, /* of a drain, in one call */
	EVENTS = 16,
	/* How long a namespace that is deleted lives on with us, at most. */
	NAMES_CHECK_MS = 250,
};

/* epoll_event.data: these, or SOURCE_LINKS plus the index of a namespace. */
enum source {
	SOURCE_TIMER,
	SOURCE_STOP,
	SOURCE_RING,
	SOURCE_HOOKS,
	SOURCE_NAMES,
	SOURCE_LINKS
};

static int open_fds(struct netobs *ctx)
{
	ctx->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ctx->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* The clock of the flows' times: a suspended host drains on waking up. */
	ctx->timer_fd =
		timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ctx->epoll_fd < 0 || ctx->stop_fd < 0 || ctx->timer_fd < 0)
		return -errno;
	return 0;
}

static int add_source(const struct netobs *ctx, int fd, uint32_t source,
		      uint32_t flags)
{
	struct epoll_event event = { .events = EPOLLIN | flags,
				     .data.u32 = source };

	return epoll_ctl(ctx->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void free_context(struct netobs **ctx)
{
	netobs_free(*ctx);
}

static int init(struct netobs *ctx, const struct netobs_opts *opts)
{
	int err = opts ? sized_check(opts, sizeof(*opts), &ctx->log) : 0;

	err = err ?: context_check_options(&ctx->opts, &ctx->log);
	host_init(&ctx->host, &ctx->log);
	if (!err)
		err = observation_init(&ctx->observation, &ctx->host,
				       ctx->opts.interfaces, ctx->opts.exclude);
	err = err ?: open_fds(ctx);
	err = err ?: add_source(ctx, ctx->stop_fd, SOURCE_STOP, 0);
	return err ?: add_source(ctx, ctx->timer_fd, SOURCE_TIMER, 0);
}

int netobs_new(const struct netobs_opts *opts, struct netobs **ret_ctx)
{
	__attribute__((cleanup(free_context))) struct netobs *ctx = NULL;
	int err;

	if (!ret_ctx)
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->epoll_fd = ctx->stop_fd = ctx->timer_fd = ctx->names_fd = -1;
	context_copy_options(opts, &ctx->opts);
	ctx->log = (struct log){ ctx->opts.on_log, ctx->opts.user, &ctx->error };
	err = log_keep_error(&ctx->log, "cannot make a context", init(ctx, opts));
	if (err) {
		log_copy_error(&ctx->log, ctx->opts.error);
		return err;
	}
	/* What is the caller's has been taken over, and may go away. */
	ctx->opts.interfaces = NULL;
	ctx->opts.exclude = NULL;
	ctx->opts.error = NULL;
	*ret_ctx = TAKE_PTR(ctx);
	return 0;
}

void netobs_free(struct netobs *ctx)
{
	if (!ctx)
		return;
	observation_done(&ctx->observation);
	host_done(&ctx->host);
	pipeline_done(&ctx->pipeline);
	close_fd(&ctx->names_fd);
	close_fd(&ctx->timer_fd);
	close_fd(&ctx->stop_fd);
	close_fd(&ctx->epoll_fd);
	free(ctx);
}

/* Namespaces come and go: an epoll set forgets what is closed by itself. */
static int add_netns(struct netobs *ctx)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < ctx->host.n_netns; i++) {
		struct netns *netns = &ctx->host.netns[i];

		if (netns->is_polled || netns->rtnl_fd < 0)
			continue;
		err = add_source(ctx, netns->rtnl_fd, SOURCE_LINKS + i, 0);
		netns->is_polled = !err;
	}
	return err;
}

/* A name's namespace is not a thing that can be waited for. */
static int add_names_timer(struct netobs *ctx)
{
	const struct timespec period = { .tv_nsec = NAMES_CHECK_MS *
						    NSEC_PER_MSEC };
	const struct itimerspec at = { period, period };

	if (!host_has_names(&ctx->host))
		return 0;
	ctx->names_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ctx->names_fd < 0 || timerfd_settime(ctx->names_fd, 0, &at, NULL))
		return -errno;
	return add_source(ctx, ctx->names_fd, SOURCE_NAMES, 0);
}

static int add_sources(struct netobs *ctx)
{
	int err = add_source(ctx, store_events_fd(&ctx->pipeline.store),
			     SOURCE_RING, EPOLLONESHOT);

	err = err   ?:
		      add_source(ctx, attacher_fd(&ctx->observation.attacher),
				 SOURCE_HOOKS, 0);
	return err ?: add_names_timer(ctx) ?: add_netns(ctx);
}

static int64_t interval_ns(const struct netobs *ctx)
{
	return ctx->opts.interval_ms * NSEC_PER_MSEC;
}

/* When there is something to do next; never 0, which would disarm the timer. */
static int64_t next_ns(const struct netobs *ctx)
{
	uint32_t wait_ms = pipeline_wait_ms(&ctx->pipeline);
	const int64_t at_once = 1;

	if (pipeline_is_idle(&ctx->pipeline) && ctx->is_making_room)
		wait_ms = PIPELINE_ROOM_WAIT_MS;
	if (wait_ms)
		return clock_boot_ns() + wait_ms * NSEC_PER_MSEC;
	if (!pipeline_is_idle(&ctx->pipeline))
		return at_once;
	if (ctx->state != CONTEXT_RUNNING)
		return observation_is_detached(&ctx->observation) ?
			       at_once :
			       ctx->observation.leave_ns;
	/* Where more flows come than max_flows, draining must not eat the host. */
	if (ctx->is_early_wanted)
		return min_u64(ctx->due_ns,
			       max_u64(ctx->pipeline.rested_ns, at_once));
	return ctx->due_ns;
}

static void arm_timer(const struct netobs *ctx)
{
	int64_t ns = next_ns(ctx);
	struct itimerspec at = {
		.it_value = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC },
	};

	timerfd_settime(ctx->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static int start(struct netobs *ctx)
{
	struct pipeline_options pipeline_options;
	struct attach_options attach;
	int err;

	if (ctx->state != CONTEXT_NEW)
		return -EALREADY;
	ctx->state = CONTEXT_FAILED;
	pipeline_options = context_pipeline_options(ctx);
	attach = context_attach_options(ctx);
	if (!attach.use_tcx && !attach.use_clsact) {
		log_error(&ctx->log,
			  "tcx and clsact are both disabled: there is no way to attach");
		return -ENOTSUP;
	}

	err = pipeline_init(&ctx->pipeline, &pipeline_options, &ctx->host,
			    &ctx->log);
	if (err)
		return err;
	/* All interfaces that are there are observed from the same moment on. */
	store_pause(&ctx->pipeline.store, true);
	err = observation_start(&ctx->observation, &ctx->pipeline.store,
				&attach, context_may_expedite(ctx));
	err = err ?: add_sources(ctx);
	if (err) {
		observation_done(&ctx->observation);
		host_done(&ctx->host);
		return err;
	}
	store_pause(&ctx->pipeline.store, false);
	ctx->state = CONTEXT_RUNNING;
	ctx->due_ns = clock_boot_ns() + interval_ns(ctx);
	arm_timer(ctx);
	log_info(&ctx->log, "observing %u interfaces",
		 ctx->observation.n_attached);
	return 0;
}

int netobs_start(struct netobs *ctx)
{
	int err;

	if (!ctx)
		return -EINVAL;
	log_expect_error(&ctx->log);
	err = start(ctx);
	if (privilege_missing(err, PRIVILEGE_ALL)) {
		if (!ctx->error.is_new)
			log_error(&ctx->log, "cannot start: %s%s", strerror(-err),
				  privilege_hint(err, PRIVILEGE_ALL).text);
		return -EPERM;
	}
	return log_keep_error(&ctx->log, "cannot start", err);
}

const char *netobs_last_error(const struct netobs *ctx)
{
	return ctx ? ctx->error.text : "";
}

int netobs_fd(const struct netobs *ctx)
{
	return ctx ? ctx->epoll_fd : -EINVAL;
}

void netobs_stop(struct netobs *ctx)
{
	const uint64_t one = 1;
	int saved = errno;

	if (!ctx)
		return;
	__atomic_store_n(&ctx->is_stopping, true, __ATOMIC_RELAXED);
	/* Fails only when the descriptor is as readable as can be. */
	(void)!write(ctx->stop_fd, &one, sizeof(one));
	errno = saved;
}

/* Listen for the ring buffer's next call for help. */
static void rearm_ring(const struct netobs *ctx)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.u32 = SOURCE_RING };

	epoll_ctl(ctx->epoll_fd, EPOLL_CTL_MOD,
		  store_events_fd(&ctx->pipeline.store), &event);
}

/* Names outlive their interfaces until no flow can refer to them. */
static void sweep_interfaces(struct netobs *ctx)
{
	int64_t longest =
		max_u64(ctx->opts.active_timeout_ms, ctx->opts.idle_timeout_ms) *
		NSEC_PER_MSEC;

	host_sweep(&ctx->host,
		   ctx->pipeline.flip_ns - longest - 2 * interval_ns(ctx));
}

static void begin_drain(struct netobs *ctx, int64_t now)
{
	bool is_due = now >= ctx->due_ns;

	pipeline_begin(&ctx->pipeline, is_due ? MERGE_INTERVAL : MERGE_EARLY,
		       now);
	ctx->is_early_wanted = false;
	rearm_ring(ctx);
	if (!is_due)
		return;
	ctx->due_ns += interval_ns(ctx);
	if (ctx->due_ns <= now) /* late by more than an interval: suspended */
		ctx->due_ns = now + interval_ns(ctx);
}

/* What the ring buffer said may have to be acted upon for a while. */
static void relieve(struct netobs *ctx)
{
	enum pipeline_relief relief = pipeline_relieve(&ctx->pipeline);

	ctx->is_making_room = relief == PIPELINE_MAKING_ROOM;
	if (relief == PIPELINE_RELIEVED)
		rearm_ring(ctx);
	if (relief == PIPELINE_FULL) /* the ring is listened to after the flip */
		ctx->is_early_wanted = true;
}

static void after_drain(struct netobs *ctx)
{
	sweep_interfaces(ctx);
	observation_look(&ctx->observation);
	/* The ring may have been too full for the programs to ask for room. */
	relieve(ctx);
}

static bool is_drain_due(const struct netobs *ctx, int64_t now)
{
	return now >= ctx->due_ns ||
	       (ctx->is_early_wanted && now >= ctx->pipeline.rested_ns);
}

/* A slice of a drain. False: it is over. */
static bool work(struct netobs *ctx)
{
	int64_t end_ns = clock_boot_ns() + WORK_MS * NSEC_PER_MSEC;

	while (pipeline_step(&ctx->pipeline))
		if (pipeline_wait_ms(&ctx->pipeline) || clock_boot_ns() >= end_ns)
			return true;
	return false;
}

static void on_timer(struct netobs *ctx)
{
	int64_t now = clock_boot_ns();
	uint64_t expirations;

	if (read(ctx->timer_fd, &expirations, sizeof(expirations)) < 0)
		return; /* armed anew since */
	if (ctx->is_making_room)
		relieve(ctx);
	if (!pipeline_is_idle(&ctx->pipeline)) {
		if (!work(ctx) && ctx->state == CONTEXT_RUNNING)
			after_drain(ctx);
	} else if (ctx->state == CONTEXT_RUNNING && is_drain_due(ctx, now)) {
		begin_drain(ctx, now);
	}
	arm_timer(ctx);
}

static void on_ring(struct netobs *ctx)
{
	if (ctx->state != CONTEXT_RUNNING) /* the drain reads what is left */
		return;
	relieve(ctx);
	if (pipeline_is_idle(&ctx->pipeline))
		arm_timer(ctx);
}

static void on_stop(struct netobs *ctx)
{
	eventfd_t times;

	eventfd_read(ctx->stop_fd, &times);
	if (ctx->state != CONTEXT_RUNNING)
		return;
	store_pause(&ctx->pipeline.store, true);
	observation_detach(&ctx->observation);
	ctx->is_making_room = false;
	ctx->state = CONTEXT_STOPPING;
}

/* Complete the drain that is under way, then do the last one. */
static void go_on_stopping(struct netobs *ctx)
{
	if (!pipeline_is_idle(&ctx->pipeline))
		return;
	if (ctx->pipeline.mode != MERGE_FINAL)
		pipeline_begin(&ctx->pipeline, MERGE_FINAL, clock_boot_ns());
	else if (observation_is_detached(&ctx->observation))
		ctx->state = CONTEXT_STOPPED;
	arm_timer(ctx);
}

static int on_links(struct netobs *ctx, uint32_t netns)
{
	int err = host_update(&ctx->host, &ctx->host.netns[netns]);

	if (err)
		log_error(&ctx->log, "following interfaces: %s", strerror(-err));
	return err;
}

static int on_names(struct netobs *ctx)
{
	uint64_t expirations;

	if (read(ctx->names_fd, &expirations, sizeof(expirations)) < 0)
		return 0;
	host_check_names(&ctx->host);
	return add_netns(ctx);
}

static int handle(struct netobs *ctx, uint32_t source)
{
	switch (source) {
	case SOURCE_TIMER:
		on_timer(ctx);
		return 0;
	case SOURCE_RING:
		on_ring(ctx);
		return 0;
	case SOURCE_STOP:
		on_stop(ctx);
		return 0;
	case SOURCE_HOOKS:
		observation_collect(&ctx->observation);
		return 0;
	case SOURCE_NAMES:
		return on_names(ctx);
	default:
		return on_links(ctx, source - SOURCE_LINKS);
	}
}

/* The error that calls of a context that does not run end with. */
static int check_running(const struct netobs *ctx)
{
	if (!ctx)
		return -EINVAL;
	if (ctx->state == CONTEXT_STOPPED)
		return -ECANCELED;
	return ctx->state == CONTEXT_RUNNING || ctx->state == CONTEXT_STOPPING ?
		       0 :
		       -EINVAL;
}

static int dispatch(struct netobs *ctx)
{
	struct epoll_event events[EVENTS];
	int err = check_running(ctx), n;
	uint64_t before;

	if (err)
		return err;
	before = ctx->pipeline.merge.records;
	n = epoll_wait(ctx->epoll_fd, events, EVENTS, 0);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n && !err; i++)
		err = handle(ctx, events[i].data.u32);
	if (err)
		return err;
	if (ctx->state == CONTEXT_STOPPING)
		go_on_stopping(ctx);
	/* The last records are counted before it is said that there are no more. */
	return (int)(ctx->pipeline.merge.records - before) ?: check_running(ctx);
}

int netobs_dispatch(struct netobs *ctx)
{
	if (!ctx)
		return -EINVAL;
	log_expect_error(&ctx->log);
	return log_keep_error(&ctx->log, "cannot dispatch", dispatch(ctx));
}

int netobs_poll(struct netobs *ctx, int timeout_ms)
{
	struct pollfd fd;

	if (check_running(ctx))
		return netobs_dispatch(ctx); /* which says why not */
	fd = (struct pollfd){ .fd = ctx->epoll_fd, .events = POLLIN };
	if (poll(&fd, 1, timeout_ms) < 0)
		return -errno;
	return netobs_dispatch(ctx);
}

int netobs_drain(struct netobs *ctx)
{
	int err = check_running(ctx);
	uint64_t before;

	if (err)
		return err;
	before = ctx->pipeline.merge.records;
	pipeline_finish(&ctx->pipeline);
	pipeline_begin(&ctx->pipeline,
		       ctx->state == CONTEXT_RUNNING ? MERGE_ALL : MERGE_FINAL,
		       clock_boot_ns());
	ctx->is_early_wanted = false;
	pipeline_finish(&ctx->pipeline);
	rearm_ring(ctx);
	arm_timer(ctx);
	return ctx->pipeline.merge.records - before;
}

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
