// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A tracer: reads what the programs report, and chooses the connections. */
#include "base/options.h"
#include "base/privilege.h"
#include "base/util.h"
#include "engine/map.h"
#include "filter/filter.h"
#include "trace_state.h"

#include <errno.h>
#include <netobs/probe.h>
#include <netobs/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONNECTIONS_DEFAULT = 1024,
	CONNECTIONS_MAX = 65536,
	EVENTS_DEFAULT = 1000000,
	RATE_DEFAULT = 200000,
	RING_DEFAULT = 8 << 20,
	LAYERS_ALL = (1 << NETOBS_TRACE_LAYERS) - 1,
	RING_MIN = 64 << 10,
	EVENTS = 1 << NETOBS_RECORD_TRACE, /* of records */
	JOURNEYS = 1 << NETOBS_RECORD_JOURNEY,
	QUEUES_WANTED = 1 << NETOBS_RECORD_QUEUE,
	HOSTS = 1 << NETOBS_RECORD_HOST,
	TURNS = 1 << NETOBS_RECORD_TURN, /* made of journeys */
	ALL_RECORDS = EVENTS | JOURNEYS | TURNS | QUEUES_WANTED | HOSTS,
	SLOTS_PER_CONNECTION = 2,
	READ_MS = 10,  /* between looks into the ring */
	SWEEP_MS = 50, /* between looks at all slots, and at all hooks */
	/* The other tuples of a candidate are known by then: its first packet has passed NAT. */
	DECIDE_MS = 100,
	REFUSED_DATAGRAMS_MS = 3000,
	/* Interval between lists of the open sockets of the chosen processes. */
	LIST_MS = 1000,
	PROCESS_MS = 2 * LIST_MS +
		     DECIDE_MS, /* a candidate of such a process is listed by then */
	GRACE_MS = 2,		/* between looks whether programs have ended */
	SLICE_MS = 20,		/* of a call, for events */
};

/* Time after its last event that a closed connection waits for a process to read. */
#define UNREAD_NS (60ULL * NSEC_PER_SEC)

static loop_fn on_readable;
static const struct life_ops life_ops;

/* ---- Options --------------------------------------------------------------------------- */

static bool wants(const struct netobs_trace_opts *opts,
		  enum netobs_record_type type)
{
	return opts->records >> type & 1;
}

static bool is_ring_size(uint32_t bytes)
{
	return bytes >= RING_MIN && !(bytes & (bytes - 1));
}

static void set_trace_defaults(struct netobs_trace_opts *opts)
{
	opts->max_connections = opts->max_connections ?: CONNECTIONS_DEFAULT;
	opts->max_events = opts->max_events ?: EVENTS_DEFAULT;
	opts->max_rate = opts->max_rate ?: RATE_DEFAULT;
	opts->ring_bytes = opts->ring_bytes ?: RING_DEFAULT;
	opts->layers = opts->layers ?: LAYERS_ALL;
	opts->records = opts->records ?: JOURNEYS;
}

static int check_trace_options(const struct netobs_trace_opts *opts,
			       const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_record", "it is not set", !opts->on_record },
		{ "records", "it has a type that a tracer does not make",
		  opts->records & ~(uint64_t)ALL_RECORDS },
		{ "only_armed", "a process is chosen as well",
		  opts->only_armed &&
			  (opts->pid || opts->command || opts->container) },
		{ "layers", "it has a layer that is unknown",
		  opts->layers & ~LAYERS_ALL },
		{ "command", "it is empty", opts->command && !*opts->command },
		{ "max_connections", "it is more than 65536",
		  opts->max_connections > CONNECTIONS_MAX },
		{ "ring_bytes", "it is no power of two, or less than 64 KiB",
		  !is_ring_size(opts->ring_bytes) },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}

void trace_name_alert(const struct trace *trace, uint64_t connection,
		      int64_t *alert_ns, char alert[64])
{
	const struct traced *traced = trace_slot(trace, connection);

	if (traced->id != connection || !traced->alert_ns)
		return;
	*alert_ns = traced->alert_ns;
	memcpy(alert, traced->alert, sizeof(traced->alert));
}

void trace_deliver(void *ctx, const struct netobs_record *record)
{
	struct trace *trace = ctx;

	trace->life.delivered++;
	trace->opts.on_record(record, trace->opts.user);
}

static void deliver_journey(struct netobs_journey *journey, void *ctx)
{
	struct trace *trace = ctx;

	if (trace->turns)
		turns_join(trace->turns, journey);
	if (!(trace->opts.records & JOURNEYS))
		return;
	if (journey->drop_reason)
		drop_names_cause(&trace->names, journey->drop_reason,
				 journey->drop_cause,
				 sizeof(journey->drop_cause));

	trace->stats.journeys++;
	trace->stats.complete_journeys += !journey->unknown_parts;
	trace_name_alert(trace, journey->connection, &journey->alert_ns,
			 journey->alert);
	trace_deliver(trace, &journey->record);
}

static int choose_filter(struct trace *trace)
{
	const char *expression = trace->opts.filter;
	const struct log *log = &trace->life.log;
	int err = filter_compile(expression, log, &trace->filter);

	if (err || trace->opts.only_armed)
		return err;
	err = filter_check_tuple(trace->filter, log);
	if (err)
		return err;
	trace->wants_datagrams =
		!trace_process_is_given(&trace->process) &&
		trace_may_match(expression, "udp or icmp or icmp6");
	if (trace->wants_datagrams || trace_may_match(expression, "tcp"))
		return 0;
	log_error(log,
		  "filter: it matches no packet of %s, so it chooses nothing",
		  trace_process_is_given(&trace->process) ? "TCP" :
							    "TCP, UDP or ICMP");
	return -EINVAL;
}

/* Find the namespaces that count. */
static int choose_spaces(struct trace *trace)
{
	const char *const *names = trace->opts.netns;
	const struct log *log = &trace->life.log;

	for (; names && *names; names++) {
		int err = trace->n_spaces == TRACE_SPACES_MAX ? -E2BIG : 0;

		err = err ?: netns_find(*names, &trace->spaces[trace->n_spaces]);
		if (err) {
			log_error(log, "netns: '%s': %s", *names,
				  err == -E2BIG ? "there are more than 64" :
						  strerror(-err));
			return -EINVAL;
		}
		trace->n_spaces++;
	}
	trace->opts.netns = NULL; /* owned by the caller */
	return 0;
}

static int init_trace(struct trace *trace, const struct netobs_trace_opts *opts)
{
	int err = sized_check(opts, sizeof(*opts), &trace->life.log);

	err = err ?: check_trace_options(&trace->opts, &trace->life.log);
	if (!err)
		err = trace_process_read(&trace->process, &trace->opts,
					 &trace->life.log);
	if (!err)
		err = choose_filter(trace) ?: choose_spaces(trace);
	trace->opts.filter = NULL; /* owned by the caller, as the next two */
	trace->opts.command = trace->opts.container = NULL;
	if (!err && trace->opts.records & (JOURNEYS | TURNS))
		err = journeys_new(deliver_journey, trace, &trace->journeys);
	if (!err && trace->opts.records & TURNS)
		err = trace_turns_new(trace);
	err = err ?: life_open(&trace->life);
	if (!err)
		err = loop_add_timer(&trace->life.loop, CLOCK_BOOTTIME,
				     on_readable, trace, &trace->read_timer);
	return err;
}

int netobs_trace_new(const struct netobs_trace_opts *opts,
		     struct netobs **ret_trace)
{
	struct trace *trace;

	if (!opts || !ret_trace)
		return -EINVAL;
	trace = calloc(1, sizeof(*trace));
	if (!trace)
		return -ENOMEM;
	memcpy(&trace->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	set_trace_defaults(&trace->opts);
	life_init(&trace->life, &life_ops, trace->opts.on_log, trace->opts.user);
	return life_made(&trace->life, "a tracer", init_trace(trace, opts),
			 trace->opts.error, ret_trace);
}

static void close_programs(struct trace *trace)
{
	queues_close(TAKE_PTR(trace->queues));
	host_records_close(TAKE_PTR(trace->hosts));
	trace_hooks_close(&trace->hooks);
	trace_programs_close(&trace->programs);
	threads_close(TAKE_PTR(trace->threads));
}

static void free_traced(struct trace *trace)
{
	for (uint32_t i = 0; trace->traced && i < trace->programs.knobs.slots; i++)
		traced_clear(&trace->traced[i]);
	free(trace->traced);
	trace->traced = NULL;
	TAILQ_INIT(&trace->room);
}

static void free_trace(void *object)
{
	struct trace *trace = object;

	map_grace_abandon(trace->grace);
	free_traced(trace);
	close_programs(trace);
	drop_names_close(&trace->names);
	journeys_free(trace->journeys);
	turns_free(trace->turns);
	filter_free(trace->filter);
}

/* ---- The ring and the slots ------------------------------------------------------------ */

static int on_report(void *ctx, void *data, size_t size)
{
	struct trace *trace = ctx;

	(void)size;
	trace_take_report(trace, data);
	return clock_boot_ns() < trace->slice_end_ns ? 0 : -EAGAIN;
}

static void set_read_timer(const struct trace *trace, uint32_t ms)
{
	loop_set_timer(trace->read_timer,
		       ms ? clock_boot_ns() + ms * NSEC_PER_MSEC : 1);
}

/* A process may read from a socket long after the connection is closed. */
static bool has_unread(const struct trace *trace, const struct traced *traced,
		       uint64_t now_ns)
{
	const struct trace_conn *conn =
		trace_programs_conn(&trace->programs, traced->id);
	const uint8_t known = TRACE_KNOWS_READY | TRACE_KNOWS_READ;
	bool has = false;

	/* Without that layer, no program sees that there is more to read. */
	if (!(trace->programs.knobs.layers >> NETOBS_TRACE_LAYER_SOCKET & 1))
		return false;
	for (int i = 0; i < 2; i++)
		has |= (conn->streams[i].known & known) == known &&
		       conn->streams[i].ready != conn->streams[i].read;
	return has && now_ns - traced->last_ns < UNREAD_NS;
}

static bool is_done(const struct trace *trace, const struct traced *traced,
		    uint64_t now_ns)
{
	if (traced->until_ns && now_ns >= traced->until_ns)
		return true;
	if (!traced_is_over(traced, now_ns))
		return false;
	if (traced->has_datagrams)
		return !trace->journeys ||
		       !journeys_is_waiting(trace->journeys, traced->id);
	return !has_unread(trace, traced, now_ns);
}

/*
 * Reject unchosen datagrams. A refused candidate is kept, so that its next datagram does not begin
 * it again.
 */
static void sweep_candidate(struct trace *trace, struct traced *traced,
			    uint64_t now_ns)
{
	const bool is_short = trace->n_used > trace->programs.knobs.slots / 2;
	const uint64_t age_ms =
		(now_ns - min_u64(now_ns, traced->opened_ns)) / NSEC_PER_MSEC;

	if (age_ms <= (traced->is_matching ? PROCESS_MS : DECIDE_MS))
		return;
	if (traced->has_datagrams && !traced->is_refused)
		trace_turn_away(trace, traced);
	else if (!traced->has_datagrams || is_short ||
		 age_ms > REFUSED_DATAGRAMS_MS)
		trace_end_connection(trace, traced);
}

/*
 * List open sockets of chosen processes, for those that they have not used yet, or got from others.
 * A socket that cannot be listed stays a candidate until the next time.
 */
static void list_sockets(struct trace *trace)
{
	trace->slice_end_ns = INT64_MAX;
	trace_programs_list(&trace->programs);
	trace->list_ns = clock_boot_ns() + LIST_MS * NSEC_PER_MSEC;
}

static void detach_programs(struct trace *trace)
{
	trace_hooks_leave(&trace->hooks);
	trace_programs_detach(&trace->programs);
}

/* Handle candidates that nothing has chosen, and connections that have ended. */
static void sweep(struct trace *trace)
{
	const uint64_t now_ns = (uint64_t)clock_boot_ns();
	uint32_t n_used = 0;

	if (trace_process_is_given(&trace->process) &&
	    (int64_t)now_ns >= trace->list_ns)
		list_sockets(trace);

	trace->n_pending = 0;
	for (uint32_t i = 0; i < trace->programs.knobs.slots; i++) {
		struct traced *traced = &trace->traced[i];

		if (!traced->id)
			continue;
		trace_note_last(trace, traced);
		trace->n_pending += traced->n_pending;
		n_used++;
		if (!traced->is_chosen)
			sweep_candidate(trace, traced, now_ns);
		else if (is_done(trace, traced, now_ns))
			trace_end_connection(trace, traced);
	}
	trace->n_used = n_used;
	if (trace->opts.only_armed && !trace->n_chosen)
		detach_programs(trace);
	if (trace->journeys)
		journeys_advance(trace->journeys,
				 clock_to_wall(&trace->clock, (int64_t)now_ns));
	if (trace->turns)
		turns_advance(trace->turns,
			      clock_to_wall(&trace->clock, (int64_t)now_ns));
	trace->sweep_ns = (int64_t)now_ns + SWEEP_MS * NSEC_PER_MSEC;
}

/* Runs also while the ring has more reports than a call may take. */
static void sweep_hooks(struct trace *trace)
{
	const int64_t now_ns = clock_boot_ns();

	if (now_ns < trace->hooks_ns)
		return;
	if (trace->queues)
		queues_sweep(trace->queues, now_ns);
	if (trace->hosts)
		host_records_sweep(trace->hosts, now_ns,
				   clock_to_wall(&trace->clock, now_ns));
	trace_hooks_sweep(&trace->hooks, now_ns);
	trace->hooks_ns = now_ns + SWEEP_MS * NSEC_PER_MSEC;
}

/* @return -EAGAIN: there may be more; or 0, or < 0 */
static int read_reports(struct trace *trace)
{
	int r;

	trace->slice_end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	r = trace_programs_read(&trace->programs);
	return r > 0 ? 0 : r;
}

static int on_readable(void *ctx, int fd)
{
	struct trace *trace = ctx;
	int r;

	(void)fd;
	if (trace->life.state != LIFE_RUNNING)
		return 0;
	trace_deliver_early(trace);
	r = read_reports(trace);
	if (r && r != -EAGAIN)
		return r;
	if (!r && clock_boot_ns() >= trace->sweep_ns)
		sweep(trace);
	sweep_hooks(trace);
	if (trace->threads)
		threads_sweep(trace->threads, clock_boot_ns());
	set_read_timer(trace, r ? 0 : READ_MS);
	return 0;
}

/* ---- Start and stop -------------------------------------------------------------------- */

static uint32_t slots_for(uint32_t connections)
{
	uint32_t slots = TRACE_SLOTS_MIN;

	while (slots < connections * SLOTS_PER_CONNECTION)
		slots *= 2;
	return slots;
}

/* Records that are made of events need all layers. */
static uint32_t layers_for(const struct netobs_trace_opts *opts)
{
	return opts->records & ~(uint64_t)EVENTS ? LAYERS_ALL : opts->layers;
}

static bool asks_for_netfilter(const struct netobs_trace_opts *opts)
{
	return opts->netfilter && layers_for(opts) >> NETOBS_TRACE_LAYER_IP & 1;
}

static bool wants_netfilter(const struct netobs_trace_opts *opts)
{
	return asks_for_netfilter(opts) &&
	       !(opts->disable_features >> NETOBS_FEATURE_TRACE_NETFILTER & 1);
}

static void deliver_queue(struct netobs_queue *queue, void *ctx)
{
	struct trace *trace = ctx;

	if (!wants(&trace->opts, NETOBS_RECORD_QUEUE))
		return;
	for (uint32_t i = 0; i < queue->n_shares; i++) {
		struct netobs_queue_share *share = &queue->shares[i];

		if (share->pid)
			memcpy(share->container_id,
			       trace_find_container(trace, share->pid),
			       sizeof(share->container_id));
	}
	trace_deliver(trace, &queue->record);
}

/* Its times are of CLOCK_BOOTTIME. */
static void deliver_cpu(struct netobs_queue *queue, void *ctx)
{
	const struct trace *trace = ctx;

	queue->record.time_ns =
		clock_to_wall(&trace->clock, queue->record.time_ns);
	queue->end_ns = clock_to_wall(&trace->clock, queue->end_ns);
	deliver_queue(queue, ctx);
}

/* Turns do without the states of threads if the kernel lacks support. */
static void open_threads(struct trace *trace)
{
	int err;

	if (!wants(&trace->opts, NETOBS_RECORD_TURN) &&
	    !wants(&trace->opts, NETOBS_RECORD_QUEUE))
		return;
	err = threads_open(&trace->threads, deliver_cpu, trace, NULL);
	if (err)
		log_warning(&trace->life.log,
			    "what threads do stays unknown: %s%s", strerror(-err),
			    privilege_hint(err, PRIVILEGE_PROGRAMS).text);
}

/* Tracing goes on without netfilter's hooks if the kernel lacks support. */
static void open_hooks(struct trace *trace)
{
	const int err = trace->programs.netfilter_error;

	if (!asks_for_netfilter(&trace->opts))
		return;
	if (!err)
		trace->hooks = (struct trace_hooks){
			.programs = &trace->programs,
			.log = &trace->life.log,
		};
	else
		log_warning(&trace->life.log,
			    "netfilter's hooks are not traced: %s%s",
			    strerror(-err),
			    privilege_hint(err, PRIVILEGE_PROGRAMS).text);
}

static int open_queues(struct trace *trace)
{
	int err = 0;

	if (trace->opts.records & QUEUES_WANTED)
		err = queues_open(&trace->programs, &trace->clock,
				  deliver_queue, trace, &trace->queues);
	if (!err && trace->opts.records & HOSTS)
		err = host_records_open(trace_deliver, trace,
					trace->programs.missing, &trace->hosts);
	return err;
}

static int open_trace(struct trace *trace)
{
	const struct netobs_trace_opts *opts = &trace->opts;
	const struct trace_knobs knobs = {
		.slots = slots_for(opts->max_connections),
		.ring_bytes = opts->ring_bytes,
		.max_rate = opts->max_rate,
		.layers = layers_for(opts),
		.points = trace_layers_points(layers_for(opts)),
		.wants_acks = opts->records & EVENTS,
		.wants_limits = opts->records & TURNS,
		.wants_datagrams = trace->wants_datagrams,
		.wants_netfilter = wants_netfilter(opts),
		.wants_queues = opts->records & QUEUES_WANTED,
		.spaces = trace->spaces,
		.n_spaces = trace->n_spaces,
		.is_idle = opts->only_armed,
	};
	int err;

	TAILQ_INIT(&trace->room);
	trace->traced = calloc(knobs.slots, sizeof(*trace->traced));
	if (!trace->traced)
		return -ENOMEM;
	clock_init(&trace->clock, CLOCK_HOST);
	err = trace_programs_open(&trace->programs, &knobs, on_report, trace,
				  &trace->life.log);
	err = err ?: open_queues(trace);
	if (err)
		return err;
	open_hooks(trace);
	open_threads(trace);
	drop_names_open(&trace->names, trace->programs.has_reasons,
			&trace->life.log);
	return loop_watch(&trace->life.loop, trace_programs_fd(&trace->programs),
			  EPOLLIN | EPOLLET, on_readable, trace);
}

/* Log the points that this kernel cannot report. */
static void report_missing(const struct trace *trace)
{
	char names[256] = "";
	size_t used = 0;

	for (unsigned int point = 0; point < NETOBS_TRACE_POINTS; point++)
		if (trace->programs.missing >> point & 1)
			used += (size_t)snprintf(names + used,
						 sizeof(names) - used, "%s%s",
						 used ? ", " : "",
						 netobs_trace_point_name(point));
	if (used)
		log_warning(&trace->life.log,
			    "the kernel has no tracepoints for %s: parts of journeys stay unknown",
			    names);
}

static int choose_existing(struct trace *trace)
{
	int err;

	trace_hooks_note_own(&trace->hooks, clock_boot_ns());
	trace->slice_end_ns = INT64_MAX;
	err = trace_programs_list(&trace->programs);
	return err ?: trace_programs_init(&trace->programs);
}

static int start_trace(void *owner)
{
	struct trace *trace = owner;
	int err = open_trace(trace);

	if (!err && !trace->opts.only_armed)
		err = choose_existing(trace);
	if (err) {
		free_traced(trace);
		close_programs(trace);
		return err;
	}
	report_missing(trace);
	trace->has_early = true;
	trace->life.state = LIFE_RUNNING;
	set_read_timer(trace, READ_MS);
	return 0;
}

/* Add the programs' counters, while they are loaded. */
static void add_counts(const struct trace *trace, struct netobs_trace_stats *stats)
{
	const struct trace_counts counts = trace_programs_count(&trace->programs);

	stats->cut_by_rate += counts.cut_by_rate;
	stats->lost_events += counts.lost + counts.missed;
	stats->unhooked_namespaces += trace_hooks_count_unhooked(&trace->hooks);
	stats->refused_connections += counts.refused;
}

static void stop_trace(void *owner)
{
	struct trace *trace = owner;

	detach_programs(trace);
	if (map_grace_begin(&trace->grace))
		trace->grace = NULL; /* no wait is possible any more */
	set_read_timer(trace, 0);
}

static void end_all(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->programs.knobs.slots; i++)
		if (trace->traced[i].id)
			trace_end_connection(trace, &trace->traced[i]);
}

/* Read reports until the programs have ended. */
static int step_trace(void *owner)
{
	struct trace *trace = owner;
	int r;

	if (trace->life.state != LIFE_STOPPING)
		return 0;
	if (trace->grace && map_grace_result(&trace->grace) == -EAGAIN) {
		set_read_timer(trace, GRACE_MS);
		return 0;
	}
	trace_deliver_early(trace);
	r = read_reports(trace);
	if (r) {
		set_read_timer(trace, 0);
		return r == -EAGAIN ? 0 : r;
	}
	end_all(trace);
	add_counts(trace, &trace->stats);
	free_traced(trace);
	close_programs(trace);
	trace->life.state = LIFE_STOPPED;
	set_read_timer(trace, 0);
	return 0;
}

static const struct life_ops life_ops = {
	.start = start_trace,
	.stop = stop_trace,
	.step = step_trace,
	.free = free_trace,
	.privileges = PRIVILEGE_PROGRAMS,
};

struct trace *trace_of(const struct netobs *netobs)
{
	return life_as(netobs, &life_ops);
}

int netobs_trace_stats_get(const struct netobs *netobs,
			   struct netobs_trace_stats *ret_stats)
{
	const struct trace *trace = trace_of(netobs);
	struct netobs_trace_stats stats;

	if (!trace || !ret_stats)
		return -EINVAL;
	stats = trace->stats;
	stats.current_connections = trace->n_chosen;
	if (trace->journeys)
		stats.cut_journeys = journeys_count_cut(trace->journeys);
	if (trace->turns)
		stats.thinned_turns = turns_count_thinned(trace->turns);
	add_counts(trace, &stats);
	for (uint32_t i = 0; trace->traced && i < trace->programs.knobs.slots; i++)
		if (trace->traced[i].id)
			stats.cut_by_connection +=
				trace_count_cut(trace, &trace->traced[i]);
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
