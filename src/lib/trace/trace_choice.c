// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Processes reports of the programs: chooses connections, and delivers their events. */
#include "trace_state.h"

#include "base/util.h"
#include "bpf/parse/headers.h"
#include "filter/filter.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	UNDECIDED_EVENTS = 128, /* of a candidate: enough for a handshake */
	PROCESS_EVENTS = 2048, /* of a candidate whose process is not known yet */
	PENDING_ALL_MAX = 1 << 18, /* of all candidates: 38 MiB */
	OTHERS_ALL_MAX = PENDING_ALL_MAX /
			 2, /* then only reports that an output would miss are kept */
};

/* Idle time after which a connection may be evicted. */
#define IDLE_NS (5ULL * NSEC_PER_SEC)

/* The most connections that are tried for eviction. */
enum { ROOM_TRIES = 8 };

/* ---- Layers ---------------------------------------------------------------------------- */

_Static_assert((int)TRACE_LIMIT_IDLE == NETOBS_TURN_IDLE + 1 &&
		       (int)TRACE_LIMIT_OTHER == NETOBS_TURN_OTHER + 1,
	       "limits of programs are those of events");

_Static_assert((int)TRACE_DROP == (int)NETOBS_TRACE_DROP &&
		       (int)TRACE_POSTROUTING == (int)NETOBS_TRACE_POSTROUTING &&
		       (int)TRACE_OPENS == (int)NETOBS_TRACE_POINTS,
	       "points of programs are those of events");

/* @return the layer of a point before TRACE_OPENS */
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
	case TRACE_PREROUTING ... TRACE_POSTROUTING_END:
		return NETOBS_TRACE_LAYER_IP;
	default:
		return NETOBS_TRACE_LAYER_DEVICE;
	}
}

uint32_t trace_layers_points(uint32_t layers)
{
	uint32_t points = 0;

	for (int point = 0; point < TRACE_OPENS; point++)
		if (layers >> layer_of(point) & 1)
			points |= 1U << point;
	return points;
}

/* ---- Expressions ------------------------------------------------------------------------ */

bool trace_may_match(const char *expression, const char *protocols)
{
	char error[FILTER_ERROR_MAX];
	struct filter *filter = NULL;
	char *text;
	int err;

	if (!expression || !*expression)
		return true;
	if (asprintf(&text, "(%s) and (%s)", expression, protocols) < 0)
		return true;
	err = filter_new(text, &filter, &error);
	filter_free(filter);
	free(text);
	return err != -EINVAL;
}

/* The first end of an ICMP tuple sends requests. */
static uint16_t type_of(const struct trace_tuple *tuple, int from)
{
	if (tuple->proto == IPPROTO_ICMP)
		return from ? ICMP_ECHOREPLY : ICMP_ECHO;
	return from ? ICMP6_ECHO_REPLY : ICMP6_ECHO_REQUEST;
}

bool trace_match(const struct filter *filter, const struct trace_tuple *tuple)
{
	const bool has_type = tuple->proto == IPPROTO_ICMP ||
			      tuple->proto == IPPROTO_ICMPV6;

	for (int from = 0; from < 2; from++) {
		struct filter_tuple packet = {
			.src_port = tuple->ports[from],
			.dst_port = has_type ? type_of(tuple, from) << 8 :
					       tuple->ports[!from],
			.proto = tuple->proto
		};

		memcpy(packet.src, tuple->addrs[from].bytes, sizeof(packet.src));
		memcpy(packet.dst, tuple->addrs[!from].bytes, sizeof(packet.dst));
		if (filter_match_tuple(filter, &packet))
			return true;
	}
	return false;
}

/* ---- Events ---------------------------------------------------------------------------- */

/* The connection has had an event, or must not be evicted yet. */
static void touch(struct trace *trace, struct traced *traced)
{
	TAILQ_REMOVE(&trace->room, traced, by_idle);
	traced->listed_ns = traced->last_ns;
	TAILQ_INSERT_TAIL(&trace->room, traced, by_idle);
}

/* Other reports only update the connection. */
static bool is_wanted_report(const struct trace *trace,
			     const struct trace_report *report)
{
	return trace->programs.knobs.points >> report->point & 1;
}

static uint32_t event_fields(const struct trace *trace,
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
	if (report->limit)
		has |= NETOBS_TRACE_HAS_LIMIT;
	return has;
}

/* Find the function that has dropped a packet. */
static void name_function(const struct trace *trace, uint64_t place,
			  char *function, size_t size)
{
	char name[TRACE_FUNCTION_LEN];
	uint32_t offset;

	if (!trace_programs_name(&trace->programs, place, name) ||
	    !drop_names_split(name, function, size, &offset))
		drop_names_find(&trace->names, place, function, size, &offset);
}

static void fill_event(const struct trace *trace, const struct traced *traced,
		       const struct trace_report *report, int64_t offset,
		       struct netobs_trace_event *event)
{
	const struct traced_owner *owner =
		traced_owner(traced, report->direction);

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
		.socket = report->point == TRACE_DROP ? 0 : report->socket,
		.ip_id = trace_is_datagram(report->proto) ? report->ack : 0,
		.cpu = report->cpu,
		.pid = (uint32_t)(report->pid_tgid >> 32),
		.tid = (uint32_t)report->pid_tgid,
		.ifindex = report->ifindex,
		.netns_inode = report->netns,
		.reason = report->reason,
		.queue = report->queue,
		.limit = report->limit ? report->limit - 1 : 0,
		.buffer = report->buffer,
	};
	memcpy(event->src, report->src.bytes, sizeof(event->src));
	memcpy(event->dst, report->dst.bytes, sizeof(event->dst));
	memcpy(event->command, report->command, sizeof(event->command));
	if (strncmp(report->thread, report->command, sizeof(report->thread)) != 0)
		memcpy(event->thread, report->thread, sizeof(event->thread));
	memcpy(event->interface, report->interface, sizeof(event->interface));
	if (owner) {
		event->record.has |= NETOBS_TRACE_HAS_OWNER;
		event->owner_pid = owner->pid;
		memcpy(event->owner_command, owner->command,
		       sizeof(event->owner_command));
	}
	if (report->point == TRACE_DROP)
		name_function(trace, report->socket, event->function,
			      sizeof(event->function));
	if (event->record.has & NETOBS_TRACE_HAS_REASON)
		drop_names_cause(&trace->names, report->reason, event->cause,
				 sizeof(event->cause));
}

static void note_event(const struct trace *trace,
		       const struct netobs_trace_event *event, int64_t boot_ns)
{
	const bool is_uplink = trace->queues &&
			       queues_is_uplink(trace->queues, event->netns_inode,
						event->ifindex);

	if (trace->queues)
		queues_note(trace->queues, event, boot_ns);
	if (trace->hosts)
		host_records_note(trace->hosts, event, is_uplink, boot_ns);
}

static void hand_over(struct trace *trace, const struct netobs_trace_event *event)
{
	const bool is_wanted = trace->opts.layers >> event->layer & 1;

	trace->stats.events += is_wanted;
	trace->life.delivered += is_wanted;
	if (is_wanted && trace->opts.records >> NETOBS_RECORD_TRACE & 1)
		trace->opts.on_record(&event->record, trace->opts.user);
	trace->stats.lost_events +=
		(trace->turns && turns_note(trace->turns, event)) ||
		(trace->journeys && journeys_add(trace->journeys, event));
}

static void deliver_event(struct trace *trace, struct traced *traced,
			  const struct trace_report *report)
{
	const int64_t offset = traced_note(traced, report);
	const bool is_wanted = is_wanted_report(trace, report);
	struct netobs_trace_event event;

	if (report->point == TRACE_CLOSES) {
		traced->n_closes += traced->n_closes < UINT8_MAX;
		return;
	}
	touch(trace, traced);
	if (trace->threads && report->has_process)
		threads_watch(trace->threads, (uint32_t)(report->pid_tgid >> 32),
			      (uint32_t)report->pid_tgid,
			      (int64_t)report->time_ns);
	/* Programs had a higher limit until it was chosen; trace_count_cut() has the rest. */
	if (is_wanted && traced->n_events++ >= trace->opts.max_events)
		return;
	if (trace->life.state < LIFE_STOPPING)
		trace_hooks_note(&trace->hooks, report->netns,
				 (uint32_t)(report->pid_tgid >> 32),
				 (int64_t)report->time_ns);
	if (!is_wanted)
		return;
	fill_event(trace, traced, report, offset, &event);
	note_event(trace, &event, (int64_t)report->time_ns);
	hand_over(trace, &event);
}

static void deliver_pending(struct trace *trace, struct traced *traced)
{
	trace->stats.lost_events += traced->n_pending_lost;
	traced->n_pending_lost = 0;
	for (uint32_t i = 0; i < traced->n_pending; i++)
		deliver_event(trace, traced, &traced->pending[i]);
	traced_drop_pending(traced);
}

void trace_deliver_early(struct trace *trace)
{
	if (!trace->has_early)
		return;
	trace->has_early = false;
	for (uint32_t i = 0; i < trace->programs.knobs.slots; i++)
		if (trace->traced[i].is_chosen)
			deliver_pending(trace, &trace->traced[i]);
}

/* ---- Connections ----------------------------------------------------------------------- */

static struct trace_conn *conn_of(const struct trace *trace,
				  const struct traced *traced)
{
	return trace_programs_conn(&trace->programs, traced->id);
}

struct traced *trace_slot(const struct trace *trace, uint64_t id)
{
	return &trace->traced[id & (trace->programs.knobs.slots - 1)];
}

struct traced *trace_find(const struct trace *trace,
			  const struct trace_tuple *tuple)
{
	const uint64_t id = trace_programs_find(&trace->programs, tuple);
	struct traced *traced = trace_slot(trace, id);

	return id && traced->id == id ? traced : NULL;
}

void trace_note_last(const struct trace *trace, struct traced *traced)
{
	const struct trace_conn *conn = conn_of(trace, traced);

	traced->last_ns =
		max_u64(traced->last_ns,
			__atomic_load_n(&conn->last_ns, __ATOMIC_RELAXED));
}

static uint64_t count_events(const struct trace *trace,
			     const struct traced *traced)
{
	const struct trace_conn *conn = conn_of(trace, traced);

	return __atomic_load_n(&conn->events, __ATOMIC_RELAXED);
}

uint64_t trace_count_cut(const struct trace *trace, const struct traced *traced)
{
	const uint64_t events = count_events(trace, traced);

	return traced->is_chosen && events > trace->opts.max_events ?
		       events - trace->opts.max_events :
		       0;
}

void trace_end_connection(struct trace *trace, struct traced *traced)
{
	const struct trace_programs *programs = &trace->programs;

	trace->stats.cut_by_connection += trace_count_cut(trace, traced);

	trace_programs_conn(programs, traced->id)->is_rejected = 1;
	for (uint32_t i = 0; i < traced->n_faces; i++)
		trace_programs_forget(programs, &traced->faces[i], traced->id);
	trace_programs_release(programs, traced->id);
	if (traced->is_chosen) {
		trace->n_chosen--;
		TAILQ_REMOVE(&trace->room, traced, by_idle);
		if (trace->journeys)
			journeys_end(trace->journeys, traced->id);
		if (trace->turns)
			turns_end(trace->turns, traced->id);
	}
	traced_clear(traced);
}

void trace_turn_away(struct trace *trace, struct traced *traced)
{
	for (uint32_t i = 0; i < traced->n_faces; i++)
		trace_programs_refuse(&trace->programs, &traced->faces[i]);
	trace_end_connection(trace, traced);
}

/* Reject the connection's events. Its tuples remain known, so that its packets do not begin it again. */
static void refuse(struct trace *trace, struct traced *traced)
{
	traced_drop_pending(traced);
	traced->is_refused = true;
	traced->is_matching = false;
	conn_of(trace, traced)->is_rejected = 1;
}

/* The connection is armed for a time, or some of its events or bytes are on their way. */
static bool is_kept(const struct trace *trace, const struct traced *traced)
{
	return traced->until_ns || traced->n_pending ||
	       (trace->journeys &&
		journeys_is_waiting(trace->journeys, traced->id));
}

/*
 * @return whether the connection may be evicted: it has had no packets for a while, and is not
 * kept
 */
static bool is_idle(const struct trace *trace, const struct traced *traced,
		    uint64_t now_ns)
{
	return now_ns - min_u64(now_ns, traced->last_ns) > IDLE_NS &&
	       !is_kept(trace, traced);
}

/*
 * Evict the connection that has been idle for longest. Those at the front may have had events
 * beyond their limit, or wait for a reader: these move to the end, so that all have their turn.
 */
static bool make_room(struct trace *trace)
{
	const uint64_t now_ns = (uint64_t)clock_boot_ns();

	for (int i = 0; i < ROOM_TRIES && !TAILQ_EMPTY(&trace->room); i++) {
		struct traced *first = TAILQ_FIRST(&trace->room);

		trace_note_last(trace, first);
		if (is_idle(trace, first, now_ns)) {
			trace_end_connection(trace, first);
			return true;
		}
		/* The other connections have been idle for less time. */
		if (first->last_ns == first->listed_ns && !is_kept(trace, first))
			return false;
		touch(trace, first);
	}
	return false;
}

/* @return events of a candidate beyond its limit, up to max_events, while it waited for its process */
static uint64_t count_waiting_cut(const struct trace *trace,
				  const struct traced *traced)
{
	const uint64_t events =
		min_u64(count_events(trace, traced), trace->opts.max_events);

	return traced->is_matching && events > PROCESS_EVENTS ?
		       events - PROCESS_EVENTS :
		       0;
}

void trace_choose(struct trace *trace, struct traced *traced)
{
	struct trace_conn *conn = conn_of(trace, traced);

	if (trace->n_chosen >= trace->opts.max_connections && !make_room(trace)) {
		trace->stats.refused_connections++;
		refuse(trace, traced);
		return;
	}
	trace->n_chosen++;
	trace->stats.connections++;
	trace->stats.cut_by_connection += count_waiting_cut(trace, traced);
	traced->is_chosen = true;
	traced->listed_ns = traced->last_ns;
	TAILQ_INSERT_TAIL(&trace->room, traced, by_idle);
	traced->is_matching = false;
	conn->max_events = trace->opts.max_events;
	conn->is_used = TRACE_CHOSEN;
	if (trace->life.state >= LIFE_RUNNING)
		deliver_pending(trace, traced);
}

static bool is_of_process(struct trace *trace, const struct trace_report *report)
{
	return trace_process_is(&trace->process,
				(uint32_t)(report->pid_tgid >> 32),
				report->command, report->thread);
}

/* Wait until the process uses the socket, or until the next list of sockets. */
static void wait_for_process(struct trace *trace, struct traced *traced)
{
	if (!trace_process_is_given(&trace->process)) {
		trace_choose(trace, traced);
		return;
	}
	traced->is_matching = true;
	conn_of(trace, traced)->max_events = PROCESS_EVENTS;
}

static void keep_report(struct trace *trace, struct traced *traced,
			const struct trace_report *report)
{
	/* Wanted events need the start of their stream to have an offset. */
	const bool is_counted = is_wanted_report(trace, report) ||
				traced_is_bound(report);
	const uint32_t max = is_counted ? PENDING_ALL_MAX : OTHERS_ALL_MAX;

	if (traced->is_refused)
		return;
	if (trace->n_pending < max && traced_keep(traced, report, is_counted))
		trace->n_pending++;
	else
		traced->n_pending_lost += is_counted;
	if (traced->is_matching && report->has_process &&
	    is_of_process(trace, report))
		trace_choose(trace, traced);
}

/* Note a tuple of a connection. */
static void take_face(struct trace *trace, struct traced *traced,
		      const struct trace_tuple *tuple)
{
	if (!traced_add_face(traced, tuple))
		trace_programs_forget(&trace->programs, tuple, traced->id);
	if (traced->is_chosen || traced->is_refused)
		return;
	if (trace_match(trace->filter, tuple))
		wait_for_process(trace, traced);
	else if (!trace->programs.has_nat)
		traced->has_datagrams ? trace_turn_away(trace, traced) :
					refuse(trace, traced);
	else if (!traced->is_matching)
		conn_of(trace, traced)->max_events = UNDECIDED_EVENTS;
}

/* Who has the socket may not use it while it is traced. */
static void note_holder(struct trace *trace, const struct trace_report *report,
			uint64_t id)
{
	const uint32_t pid = (uint32_t)(report->pid_tgid >> 32);

	if (trace->turns)
		turns_note_holder(trace->turns, id, report->direction, pid,
				  report->command);
	if (trace->threads)
		threads_watch(trace->threads, pid, pid, clock_boot_ns());
}

/* Choose a connection of an open socket. Two sockets of this host may have the same connection. */
static void take_existing(struct trace *trace, const struct trace_report *report,
			  const struct trace_tuple *tuple)
{
	const bool has_process = trace_process_is_given(&trace->process);
	/* Direction 0 is that of the socket that opened the connection. */
	const bool is_turned = trace_is_lower(&report->dst, report->dst_port,
					      &report->src, report->src_port) !=
			       report->direction;
	struct traced *traced;
	uint64_t id;
	int err;

	if (has_process && !is_of_process(trace, report))
		return;
	traced = has_process ? trace_find(trace, tuple) : NULL;
	if (traced) {
		if (traced->is_matching && !traced->is_chosen)
			trace_choose(trace, traced);
		return;
	}
	if (!trace_match(trace->filter, tuple))
		return;
	/* Listed sockets come again and again: they evict no connection, and count as refused only once. */
	if (has_process && trace->n_chosen >= trace->opts.max_connections) {
		trace->stats.refused_connections += !trace->list_ns;
		return;
	}
	err = trace_programs_add(&trace->programs, tuple, is_turned, &id);
	if (err) {
		trace->stats.refused_connections += err != -EEXIST;
		return;
	}
	traced = trace_slot(trace, id);
	traced_begin(traced, id, (uint64_t)clock_boot_ns(), true);
	traced_add_face(traced, tuple);
	trace_choose(trace, traced);
	if (traced->is_chosen)
		note_holder(trace, report, id);
}

void trace_take_report(struct trace *trace, const struct trace_report *report)
{
	const struct trace_tuple tuple = traced_tuple(report);
	struct traced *traced = trace_slot(trace, report->id);

	if (report->point == TRACE_EXISTS) {
		take_existing(trace, report, &tuple);
		return;
	}
	if (report->point == TRACE_OPENS) {
		if (traced->id)
			trace_end_connection(trace, traced);
		traced_begin(traced, report->id, report->time_ns,
			     report->proto != IP_PROTO_UDP);
		traced->has_datagrams = trace_is_datagram(report->proto);
	}
	if (traced->id != report->id) { /* its connection has ended */
		if (report->point == TRACE_FACE)
			trace_programs_forget(&trace->programs, &tuple,
					      report->id);
		return;
	}
	if (report->point == TRACE_OPENS || report->point == TRACE_FACE)
		take_face(trace, traced, &tuple);
	else if (traced->is_chosen && trace->life.state >= LIFE_RUNNING)
		deliver_event(trace, traced, report);
	else
		keep_report(trace, traced, report);
}
