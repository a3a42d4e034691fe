// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A tracer: reads what the programs report, and chooses the connections. */
#include "base/clock.h"
#include "base/life.h"
#include "base/privilege.h"
#include "base/sized.h"
#include "base/util.h"
#include "bpf/parse/headers.h"
#include "drops/drop_names.h"
#include "engine/map.h"
#include "engine/trace_programs.h"
#include "filter/filter.h"
#include "journeys.h"
#include "trace_match.h"
#include "traced.h"

#include <errno.h>
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
	RING_MIN = 64 << 10,
	SLOTS_PER_CONNECTION = 2,
	READ_MS = 10,  /* between looks into the ring */
	SWEEP_MS = 50, /* between looks at all slots */
	/* A candidate's other tuples are known by then: its first packet has passed NAT. */
	DECIDE_MS = 100,
	REFUSED_DATAGRAMS_MS = 3000,
	UNDECIDED_EVENTS = 128, /* of a candidate, which its handshake takes */
	GRACE_MS = 2,		/* between looks whether programs have ended */
	SLICE_MS = 20,		/* of a call, for events */
};

/* After the last event, how long a closed connection waits for a process to read. */
#define UNREAD_NS (60ULL * NSEC_PER_SEC)

struct netobs_trace {
	struct netobs_trace_opts opts;
	struct life life;
	struct filter *filter;
	bool wants_datagrams; /* it may choose some */
	int read_timer;
	int64_t slice_end_ns, sweep_ns;

	struct trace_programs programs;
	struct drop_names names;
	struct clock clock;
	struct journeys *journeys; /* NULL: not wanted */
	struct traced *traced;	   /* by slot */
	uint32_t n_chosen;
	struct map_grace *grace;
	bool is_detached; /* and no program runs any more */
	struct netobs_trace_stats stats;
};

_Static_assert((int)TRACE_DROP == (int)NETOBS_TRACE_DROP &&
		       (int)TRACE_OPENS == (int)NETOBS_TRACE_POINTS,
	       "points of programs are those of events");

static loop_fn on_readable;
static const struct life_ops life_ops;

/* ---- Options --------------------------------------------------------------------------- */

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
}

static int check_trace_options(const struct netobs_trace_opts *opts,
			       const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_event", "neither it nor on_journey is set",
		  !opts->on_event && !opts->on_journey },
		{ "max_connections", "it is more than 65536",
		  opts->max_connections > CONNECTIONS_MAX },
		{ "ring_bytes", "it is no power of two, or less than 64 KiB",
		  !is_ring_size(opts->ring_bytes) },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}

static void deliver_journey(struct netobs_journey *journey, void *ctx)
{
	struct netobs_trace *trace = ctx;

	if (journey->drop_reason)
		drop_names_cause(&trace->names, journey->drop_reason,
				 journey->drop_cause,
				 sizeof(journey->drop_cause));

	trace->stats.journeys++;
	trace->stats.complete_journeys += !journey->unknown_parts;
	trace->life.delivered++;
	trace->opts.on_journey(journey, trace->opts.user);
}

static int choose_filter(struct netobs_trace *trace)
{
	const char *expression = trace->opts.filter;
	const struct log *log = &trace->life.log;
	int err = filter_compile(expression, log, &trace->filter);

	if (err || trace->opts.only_armed)
		return err;
	trace->wants_datagrams = trace_match_has_datagrams(expression);
	if (trace->wants_datagrams || trace_match_has_tcp(expression))
		return 0;
	log_error(log,
		  "filter: it matches no packet of TCP, UDP or ICMP, so it chooses nothing");
	return -EINVAL;
}

static int init_trace(struct netobs_trace *trace,
		      const struct netobs_trace_opts *opts)
{
	int err = sized_check(opts, sizeof(*opts), &trace->life.log);

	err = err ?: check_trace_options(&trace->opts, &trace->life.log);
	if (!err)
		err = choose_filter(trace);
	trace->opts.filter = NULL; /* the caller's */
	if (!err && trace->opts.on_journey)
		err = journeys_new(deliver_journey, trace, &trace->journeys);
	err = err ?: life_open(&trace->life);
	if (!err)
		err = loop_add_timer(&trace->life.loop, CLOCK_BOOTTIME,
				     on_readable, trace, &trace->read_timer);
	return err;
}

int netobs_trace_new(const struct netobs_trace_opts *opts,
		     struct netobs_trace **ret_trace)
{
	struct netobs_trace *trace;
	int err;

	if (!opts || !ret_trace)
		return -EINVAL;
	trace = calloc(1, sizeof(*trace));
	if (!trace)
		return -ENOMEM;
	memcpy(&trace->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	set_trace_defaults(&trace->opts);
	life_init(&trace->life, &life_ops, trace, trace->opts.on_log,
		  trace->opts.user);
	err = log_keep_error(&trace->life.log, "cannot make a tracer",
			     init_trace(trace, opts));
	if (err) {
		log_copy_error(&trace->life.log, trace->opts.error);
		netobs_trace_free(trace);
		return err;
	}
	trace->opts.error = NULL;
	*ret_trace = trace;
	return 0;
}

static void free_traced(struct netobs_trace *trace)
{
	for (uint32_t i = 0; trace->traced && i < trace->programs.knobs.slots; i++)
		traced_clear(&trace->traced[i]);
	free(trace->traced);
	trace->traced = NULL;
}

void netobs_trace_free(struct netobs_trace *trace)
{
	if (!trace)
		return;
	map_grace_abandon(trace->grace);
	free_traced(trace);
	trace_programs_close(&trace->programs);
	drop_names_close(&trace->names);
	journeys_free(trace->journeys);
	filter_free(trace->filter);
	life_close(&trace->life);
	free(trace);
}

/* ---- Events ---------------------------------------------------------------------------- */

static enum netobs_trace_layer layer_of(enum trace_point point)
{
	switch (point) {
	case TRACE_SEND:
	case TRACE_SENT:
	case TRACE_READY:
	case TRACE_READ:
		return NETOBS_TRACE_LAYER_SOCKET;
	case TRACE_RETRANSMIT:
	case TRACE_SEGMENT:
	case TRACE_ACKED:
		return NETOBS_TRACE_LAYER_TCP;
	case TRACE_ENQUEUE:
	case TRACE_DEQUEUE:
		return NETOBS_TRACE_LAYER_QDISC;
	default:
		return NETOBS_TRACE_LAYER_DEVICE;
	}
}

static uint32_t event_fields(const struct netobs_trace *trace,
			     const struct traced *traced,
			     const struct trace_report *report)
{
	uint32_t has = 0;

	if (traced->streams[report->direction & 1].has_first)
		has |= NETOBS_TRACE_HAS_OFFSET;
	if (report->has_process)
		has |= NETOBS_TRACE_HAS_PROCESS;
	if (traced->has_initiator)
		has |= NETOBS_TRACE_HAS_INITIATOR;
	if (report->point == TRACE_DROP && trace->programs.has_reasons)
		has |= NETOBS_TRACE_HAS_REASON;
	return has;
}

static void fill_event(const struct netobs_trace *trace,
		       const struct traced *traced,
		       const struct trace_report *report, int64_t offset,
		       struct netobs_trace_event *event)
{
	*event = (struct netobs_trace_event){
		.record = { .sz = sizeof(*event),
			    .has = event_fields(trace, traced, report),
			    .type = NETOBS_RECORD_TRACE,
			    .time_ns = clock_to_wall(&trace->clock,
						     (int64_t)report->time_ns) },
		.connection = report->id,
		.offset = offset,
		.length = report->length,
		.seq = report->seq,
		.ack = trace_is_datagram(report->proto) ? 0 : report->ack,
		.src_port = report->src_port,
		.dst_port = report->dst_port,
		.direction = report->direction,
		.layer = layer_of(report->point),
		.point = report->point,
		.tcp_flags = report->tcp_flags,
		.protocol = report->proto,
		.is_fragment = report->is_fragment,
		.socket = report->socket,
		.ip_id = trace_is_datagram(report->proto) ? report->ack : 0,
		.cpu = report->cpu,
		.pid = (uint32_t)(report->pid_tgid >> 32),
		.tid = (uint32_t)report->pid_tgid,
		.ifindex = report->ifindex,
		.netns_inode = report->netns,
		.reason = report->reason,
		.queue = report->queue,
		.buffer = report->buffer,
	};
	memcpy(event->src, report->src.bytes, sizeof(event->src));
	memcpy(event->dst, report->dst.bytes, sizeof(event->dst));
	memcpy(event->command, report->command, sizeof(event->command));
	memcpy(event->interface, report->interface, sizeof(event->interface));
	if (event->record.has & NETOBS_TRACE_HAS_REASON)
		drop_names_cause(&trace->names, report->reason, event->cause,
				 sizeof(event->cause));
}

static void deliver_event(struct netobs_trace *trace, struct traced *traced,
			  const struct trace_report *report)
{
	const int64_t offset = traced_note(traced, report);
	struct netobs_trace_event event;

	if (report->point == TRACE_CLOSES) {
		traced->n_closes += traced->n_closes < UINT8_MAX;
		return;
	}
	fill_event(trace, traced, report, offset, &event);
	trace->stats.events++;
	trace->life.delivered++;
	if (trace->opts.on_event)
		trace->opts.on_event(&event, trace->opts.user);
	if (trace->journeys && journeys_add(trace->journeys, &event))
		trace->stats.lost_events++;
}

/* ---- Connections ----------------------------------------------------------------------- */

static struct traced *slot_of(const struct netobs_trace *trace, uint64_t id)
{
	return &trace->traced[id & (trace->programs.knobs.slots - 1)];
}

static uint64_t count_cut(const struct netobs_trace *trace,
			  const struct traced *traced)
{
	const struct trace_conn *conn =
		trace_programs_conn(&trace->programs, traced->id);
	const uint64_t events = __atomic_load_n(&conn->events, __ATOMIC_RELAXED);

	return traced->is_chosen && events > trace->opts.max_events ?
		       events - trace->opts.max_events :
		       0;
}

/* Its slot may be another connection's from now on. */
static void end_connection(struct netobs_trace *trace, struct traced *traced)
{
	const struct trace_programs *programs = &trace->programs;

	trace->stats.cut_by_connection += count_cut(trace, traced);

	for (uint32_t i = 0; i < traced->n_faces; i++)
		trace_programs_forget(programs, &traced->faces[i], traced->id);
	trace_programs_conn(programs, traced->id)->is_rejected = 1;
	trace_programs_release(programs, traced->id);
	if (traced->is_chosen) {
		trace->n_chosen--;
		if (trace->journeys)
			journeys_end(trace->journeys, traced->id);
	}
	traced_clear(traced);
}

/* Its tuples are known until its packet has passed all points: so none begins it anew. */
static void refuse(struct netobs_trace *trace, struct traced *traced)
{
	traced->is_refused = true;
	trace_programs_conn(&trace->programs, traced->id)->is_rejected = 1;
}

static void choose(struct netobs_trace *trace, struct traced *traced)
{
	if (trace->n_chosen >= trace->opts.max_connections) {
		trace->stats.refused_connections++;
		refuse(trace, traced);
		return;
	}
	trace->n_chosen++;
	trace->stats.connections++;
	traced->is_chosen = true;
	trace_programs_conn(&trace->programs, traced->id)->max_events =
		trace->opts.max_events;
	trace->stats.lost_events += traced->n_pending_lost;
	for (uint32_t i = 0; i < traced->n_pending; i++)
		deliver_event(trace, traced, &traced->pending[i]);
	free(traced->pending);
	traced->pending = NULL;
	traced->n_pending = 0;
}

/* A tuple of a connection is known. */
static void take_face(struct netobs_trace *trace, struct traced *traced,
		      const struct trace_tuple *tuple)
{
	traced_add_face(traced, tuple);
	if (traced->is_chosen || traced->is_refused)
		return;
	if (trace_match(trace->filter, tuple))
		choose(trace, traced);
	else if (!trace->programs.has_nat)
		refuse(trace, traced);
	else
		trace_programs_conn(&trace->programs, traced->id)->max_events =
			UNDECIDED_EVENTS;
}

/* A connection that there was: two sockets of this host may report it. */
static void take_existing(struct netobs_trace *trace,
			  const struct trace_tuple *tuple)
{
	struct traced *traced;
	uint64_t id;
	int err;

	if (!trace_match(trace->filter, tuple))
		return;
	err = trace_programs_add(&trace->programs, tuple, false, &id);
	if (err) {
		trace->stats.refused_connections += err != -EEXIST;
		return;
	}
	traced = slot_of(trace, id);
	traced_begin(traced, id, (uint64_t)clock_boot_ns(), false);
	traced_add_face(traced, tuple);
	choose(trace, traced);
}

static void take_report(struct netobs_trace *trace,
			const struct trace_report *report)
{
	const struct trace_tuple tuple = traced_tuple(report);
	struct traced *traced = slot_of(trace, report->id);

	if (report->point == TRACE_EXISTS) {
		take_existing(trace, &tuple);
		return;
	}
	if (report->point == TRACE_OPENS) {
		if (traced->id)
			end_connection(trace, traced);
		traced_begin(traced, report->id, report->time_ns,
			     report->proto != IP_PROTO_UDP);
		traced->has_datagrams = trace_is_datagram(report->proto);
	}
	if (traced->id != report->id)
		return; /* it has ended */
	if (report->point == TRACE_OPENS || report->point == TRACE_FACE)
		take_face(trace, traced, &tuple);
	else if (traced->is_chosen)
		deliver_event(trace, traced, report);
	else
		traced_keep(traced, report);
}

static int on_report(void *ctx, void *data, size_t size)
{
	struct netobs_trace *trace = ctx;

	(void)size;
	take_report(trace, data);
	return clock_boot_ns() < trace->slice_end_ns ? 0 : -EAGAIN;
}

/* ---- The ring and the slots ------------------------------------------------------------ */

static void set_read_timer(const struct netobs_trace *trace, uint32_t ms)
{
	loop_set_timer(trace->read_timer,
		       ms ? clock_boot_ns() + ms * NSEC_PER_MSEC : 1);
}

/* A process may read what its socket has long after both are closed. */
static bool has_unread(const struct netobs_trace *trace,
		       const struct traced *traced, uint64_t now_ns)
{
	const struct trace_conn *conn =
		trace_programs_conn(&trace->programs, traced->id);
	const uint8_t known = TRACE_KNOWS_READY | TRACE_KNOWS_READ;
	bool has = false;

	for (int i = 0; i < 2; i++)
		has |= (conn->streams[i].known & known) == known &&
		       conn->streams[i].ready != conn->streams[i].read;
	return has && now_ns - traced->last_ns < UNREAD_NS;
}

static bool is_done(const struct netobs_trace *trace,
		    const struct traced *traced, uint64_t now_ns)
{
	if (traced->until_ns && now_ns >= traced->until_ns)
		return true;
	return traced_is_over(traced, now_ns) &&
	       !has_unread(trace, traced, now_ns);
}

/* Each datagram of one that is refused would begin it anew. */
static bool is_decided(const struct traced *traced, uint64_t now_ns)
{
	const uint32_t ms = traced->is_refused && traced->has_datagrams ?
				    REFUSED_DATAGRAMS_MS :
				    DECIDE_MS;

	return now_ns > traced->opened_ns + ms * (uint64_t)NSEC_PER_MSEC;
}

/* Candidates that nothing has chosen, and connections that have ended. */
static void sweep(struct netobs_trace *trace)
{
	const uint64_t now_ns = (uint64_t)clock_boot_ns();

	for (uint32_t i = 0; i < trace->programs.knobs.slots; i++) {
		struct traced *traced = &trace->traced[i];

		if (!traced->id)
			continue;
		if (traced->is_chosen ? is_done(trace, traced, now_ns) :
					is_decided(traced, now_ns))
			end_connection(trace, traced);
	}
	if (trace->opts.only_armed && !trace->n_chosen)
		trace_programs_detach(&trace->programs);
	if (trace->journeys)
		journeys_advance(trace->journeys,
				 clock_to_wall(&trace->clock, (int64_t)now_ns));
	trace->sweep_ns = (int64_t)now_ns + SWEEP_MS * NSEC_PER_MSEC;
}

/* @return -EAGAIN: there may be more; or 0, or < 0 */
static int read_reports(struct netobs_trace *trace)
{
	int r;

	trace->slice_end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	r = trace_programs_read(&trace->programs);
	return r > 0 ? 0 : r;
}

static int on_readable(void *ctx, int fd)
{
	struct netobs_trace *trace = ctx;
	int r;

	(void)fd;
	if (trace->life.state != LIFE_RUNNING)
		return 0;
	r = read_reports(trace);
	if (r && r != -EAGAIN)
		return r;
	if (!r && clock_boot_ns() >= trace->sweep_ns)
		sweep(trace);
	set_read_timer(trace, r ? 0 : READ_MS);
	return 0;
}

/* ---- Connections that are armed -------------------------------------------------------- */

static struct traced *find_traced(const struct netobs_trace *trace,
				  const struct trace_tuple *tuple)
{
	for (uint32_t i = 0; i < trace->programs.knobs.slots; i++)
		for (uint32_t face = 0; face < trace->traced[i].n_faces; face++)
			if (!memcmp(&trace->traced[i].faces[face], tuple,
				    sizeof(*tuple)))
				return &trace->traced[i];
	return NULL;
}

static uint64_t end_of(uint32_t duration_ms)
{
	if (!duration_ms)
		return 0;
	return (uint64_t)clock_boot_ns() + duration_ms * (uint64_t)NSEC_PER_MSEC;
}

/* 0 is later than all others. */
static void prolong(struct traced *traced, uint64_t until_ns)
{
	if (traced->until_ns && (!until_ns || until_ns > traced->until_ns))
		traced->until_ns = until_ns;
}

/* If it fails, the next sweep detaches what nothing needs. */
static int arm_another(struct netobs_trace *trace,
		       const struct trace_tuple *tuple, bool is_turned,
		       uint64_t until_ns)
{
	struct traced *traced;
	uint64_t id;
	int err = 0;

	if (trace->n_chosen >= trace->opts.max_connections)
		return -ENOSPC;
	if (trace->opts.only_armed)
		err = trace_programs_attach(&trace->programs);
	if (!err)
		err = trace_programs_add(&trace->programs, tuple, is_turned, &id);
	if (err)
		return err;
	traced = slot_of(trace, id);
	traced_begin(traced, id, (uint64_t)clock_boot_ns(), true);
	traced_add_face(traced, tuple);
	traced->until_ns = until_ns;
	choose(trace, traced);
	return 0;
}

static int arm_target(struct netobs_trace *trace,
		      const struct netobs_trace_target *target)
{
	struct trace_report ends = { .src_port = target->client_port,
				     .dst_port = target->server_port,
				     .proto = IP_PROTO_TCP };
	struct trace_tuple tuple;
	struct traced *traced;
	bool is_turned;

	memcpy(ends.src.bytes, target->client, sizeof(ends.src.bytes));
	memcpy(ends.dst.bytes, target->server, sizeof(ends.dst.bytes));
	tuple = traced_tuple(&ends);
	is_turned = memcmp(&tuple.addrs[0], &ends.src, sizeof(ends.src)) ||
		    tuple.ports[0] != ends.src_port;
	traced = find_traced(trace, &tuple);
	if (!traced)
		return arm_another(trace, &tuple, is_turned,
				   end_of(target->duration_ms));
	prolong(traced, end_of(target->duration_ms));
	return 0;
}

int netobs_trace_arm(struct netobs_trace *trace,
		     const struct netobs_trace_target *target)
{
	if (!trace || !target)
		return -EINVAL;
	log_expect_error(&trace->life.log);
	if (target->sz < sizeof(*target)) {
		log_error(&trace->life.log, "target: its size is wrong");
		return -EINVAL;
	}
	if (trace->life.state != LIFE_RUNNING) {
		log_error(&trace->life.log, "the tracer does not run");
		return -EINVAL;
	}
	return arm_target(trace, target);
}

/* ---- Start and stop -------------------------------------------------------------------- */

static uint32_t slots_for(uint32_t connections)
{
	uint32_t slots = TRACE_SLOTS_MIN;

	while (slots < connections * SLOTS_PER_CONNECTION)
		slots *= 2;
	return slots;
}

static int open_trace(struct netobs_trace *trace)
{
	const struct netobs_trace_opts *opts = &trace->opts;
	const struct trace_knobs knobs = {
		.slots = slots_for(opts->max_connections),
		.ring_bytes = opts->ring_bytes,
		.max_rate = opts->max_rate,
		.wants_acks = opts->on_event,
		.wants_datagrams = trace->wants_datagrams,
		.is_idle = opts->only_armed,
	};
	int err;

	trace->traced = calloc(knobs.slots, sizeof(*trace->traced));
	if (!trace->traced)
		return -ENOMEM;
	clock_init(&trace->clock, CLOCK_PRECISE);
	err = trace_programs_open(&trace->programs, &knobs, on_report, trace,
				  &trace->life.log);
	if (err)
		return err;
	drop_names_open(&trace->names, trace->programs.has_reasons,
			&trace->life.log);
	return loop_watch(&trace->life.loop, trace_programs_fd(&trace->programs),
			  EPOLLIN | EPOLLET, on_readable, trace);
}

/* What stays unknown on this kernel. */
static void report_missing(const struct netobs_trace *trace)
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

static int choose_existing(struct netobs_trace *trace)
{
	int err;

	trace->slice_end_ns = INT64_MAX;
	err = trace_programs_list(&trace->programs);
	return err ?: trace_programs_init(&trace->programs);
}

static int start_trace(void *owner)
{
	struct netobs_trace *trace = owner;
	int err = open_trace(trace);

	if (!err && !trace->opts.only_armed)
		err = choose_existing(trace);
	if (err) {
		free_traced(trace);
		trace_programs_close(&trace->programs);
		return err;
	}
	report_missing(trace);
	trace->life.state = LIFE_RUNNING;
	set_read_timer(trace, READ_MS);
	return 0;
}

/* What the programs have counted, while there are any. */
static void add_counts(const struct netobs_trace *trace,
		       struct netobs_trace_stats *stats)
{
	const struct trace_counts counts = trace_programs_count(&trace->programs);

	stats->cut_by_rate += counts.cut_by_rate;
	stats->lost_events += counts.lost + counts.missed;
	stats->refused_connections += counts.refused;
}

static void stop_trace(void *owner)
{
	struct netobs_trace *trace = owner;

	trace_programs_detach(&trace->programs);
	if (map_grace_begin(&trace->grace))
		trace->grace = NULL; /* nothing more can be waited for */
	set_read_timer(trace, 0);
}

static void end_all(struct netobs_trace *trace)
{
	for (uint32_t i = 0; i < trace->programs.knobs.slots; i++)
		if (trace->traced[i].id)
			end_connection(trace, &trace->traced[i]);
}

/* What the programs report until they have ended. */
static int step_trace(void *owner)
{
	struct netobs_trace *trace = owner;
	int r;

	if (trace->life.state != LIFE_STOPPING)
		return 0;
	if (trace->grace && map_grace_result(&trace->grace) == -EAGAIN) {
		set_read_timer(trace, GRACE_MS);
		return 0;
	}
	r = read_reports(trace);
	if (r) {
		set_read_timer(trace, 0);
		return r == -EAGAIN ? 0 : r;
	}
	end_all(trace);
	add_counts(trace, &trace->stats);
	free_traced(trace);
	trace_programs_close(&trace->programs);
	trace->life.state = LIFE_STOPPED;
	set_read_timer(trace, 0);
	return 0;
}

static const struct life_ops life_ops = {
	.start = start_trace,
	.stop = stop_trace,
	.step = step_trace,
	.privileges = PRIVILEGE_PROGRAMS,
};

/* ---- The public life ------------------------------------------------------------------- */

int netobs_trace_start(struct netobs_trace *trace)
{
	return trace ? life_start(&trace->life) : -EINVAL;
}

int netobs_trace_fd(const struct netobs_trace *trace)
{
	return trace ? trace->life.loop.fd : -EINVAL;
}

int netobs_trace_dispatch(struct netobs_trace *trace)
{
	return trace ? life_dispatch(&trace->life) : -EINVAL;
}

void netobs_trace_stop(struct netobs_trace *trace)
{
	if (trace)
		life_stop(&trace->life);
}

const char *netobs_trace_last_error(const struct netobs_trace *trace)
{
	return trace ? trace->life.error.text : "";
}

int netobs_trace_stats_get(const struct netobs_trace *trace,
			   struct netobs_trace_stats *ret_stats)
{
	struct netobs_trace_stats stats;

	if (!trace || !ret_stats)
		return -EINVAL;
	stats = trace->stats;
	add_counts(trace, &stats);
	for (uint32_t i = 0; trace->traced && i < trace->programs.knobs.slots; i++)
		if (trace->traced[i].id)
			stats.cut_by_connection +=
				count_cut(trace, &trace->traced[i]);
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
