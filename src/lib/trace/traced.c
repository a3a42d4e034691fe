// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "traced.h"

#include "base/util.h"
#include "bpf/parse/headers.h"

#include <stdlib.h>
#include <string.h>

enum {
	COUNTED_MAX = TRACE_CANDIDATE_EVENTS + TRACE_BOUND_EVENTS,
	OTHERS_MAX = TRACE_CANDIDATE_EVENTS,
	BOTH = 3,
	FIRST_FACES = 2,
	/* Both sockets are closed: the last reports are on their way to user space. */
	CLOSED_MS = 200,
	/* One socket is closed: the other one may be on another host, or a process may still read. */
	HALF_CLOSED_MS = 5000,
	/* A SYN that is sent again begins the connection again. */
	UNANSWERED_MS = 3000,
	/* Datagrams have no end. */
	DATAGRAM_IDLE_MS = 10000,
};

/* TCP_RST of linux/tcp.h, in the header's flags. */
enum { FLAG_FIN = 1, FLAG_SYN = 2, FLAG_RST = 4 };

void traced_begin(struct traced *traced, uint64_t id, uint64_t now_ns,
		  bool has_initiator)
{
	traced_clear(traced);
	traced->id = id;
	traced->opened_ns = traced->last_ns = now_ns;
	traced->has_initiator = has_initiator;
}

void traced_clear(struct traced *traced)
{
	free(traced->pending);
	free(traced->faces);
	*traced = (struct traced){ 0 };
}

bool traced_add_face(struct traced *traced, const struct trace_tuple *tuple)
{
	if (traced->n_faces == TRACED_FACES_MAX ||
	    !array_reserve(&traced->faces, traced->n_faces,
			   &traced->faces_capacity, sizeof(*traced->faces),
			   FIRST_FACES))
		return false;
	traced->faces[traced->n_faces++] = *tuple;
	return true;
}

bool traced_is_bound(const struct trace_report *report)
{
	return report->tcp_flags & (FLAG_SYN | FLAG_FIN | FLAG_RST);
}

static bool has_room(const struct traced *traced, bool is_counted)
{
	return is_counted ? traced->n_pending - traced->n_pending_others <
				    COUNTED_MAX :
			    traced->n_pending_others < OTHERS_MAX;
}

bool traced_keep(struct traced *traced, const struct trace_report *report,
		 bool is_counted)
{
	const size_t step = 16;
	struct trace_report *more = traced->pending;

	if (!has_room(traced, is_counted))
		return false;
	if (traced->n_pending % step == 0)
		more = realloc(more, (traced->n_pending + step) * sizeof(*more));
	if (!more)
		return false;
	traced->pending = more;
	more[traced->n_pending++] = *report;
	traced->n_pending_others += !is_counted;
	return true;
}

void traced_drop_pending(struct traced *traced)
{
	free(traced->pending);
	traced->pending = NULL;
	traced->n_pending = traced->n_pending_others = 0;
}

/* A SYN takes the sequence number before the first byte. */
static uint32_t data_seq(const struct trace_report *report)
{
	return report->seq + !!(report->tcp_flags & FLAG_SYN);
}

static bool has_seq(const struct trace_report *report)
{
	return report->point < TRACE_OPENS;
}

/* A process reads from the socket that sends in the other direction. */
static void note_owner(struct traced *traced, const struct trace_report *report)
{
	const uint8_t sends =
		(report->direction ^ (report->point == TRACE_READ)) & 1;
	struct traced_owner *owner = &traced->owners[sends];

	if (!report->has_process)
		return;
	owner->pid = (uint32_t)(report->pid_tgid >> 32);
	memcpy(owner->command, report->command, sizeof(owner->command));
}

const struct traced_owner *traced_owner(const struct traced *traced,
					uint8_t direction)
{
	const struct traced_owner *owners = traced->owners;

	if (owners[direction & 1].pid)
		return &owners[direction & 1];
	return owners[!(direction & 1)].pid ? &owners[!(direction & 1)] : NULL;
}

int64_t traced_note(struct traced *traced, const struct trace_report *report)
{
	struct traced_stream *stream = &traced->streams[report->direction & 1];
	const uint32_t seq = data_seq(report);
	const uint8_t directions = trace_is_self(&report->src, report->src_port,
						 &report->dst, report->dst_port) ?
					   BOTH :
					   1 << (report->direction & 1);

	traced->last_ns = max_u64(traced->last_ns, report->time_ns);
	note_owner(traced, report);
	if (trace_is_datagram(report->proto)) {
		traced->has_datagrams = true;
		stream->has_first = true;
		return report->piece;
	}
	if (report->tcp_flags & FLAG_RST)
		traced->n_fins = BOTH;
	if (report->tcp_flags & FLAG_FIN)
		traced->n_fins |= directions;
	if (!has_seq(report))
		return stream->last;
	traced->seen |= directions;
	if (!stream->is_known) {
		stream->is_known = true;
		stream->has_first = report->tcp_flags & FLAG_SYN;
		stream->seq = seq;
	}
	/* A segment that is sent again is a step back. */
	stream->last += (int32_t)(seq - stream->seq);
	stream->seq = seq;
	return stream->last;
}

bool traced_is_over(const struct traced *traced, uint64_t now_ns)
{
	const uint64_t idle_ms =
		now_ns > traced->last_ns ?
			(now_ns - traced->last_ns) / NSEC_PER_MSEC :
			0;

	if (traced->has_datagrams)
		return idle_ms >= DATAGRAM_IDLE_MS;
	if (traced->n_closes > 1)
		return idle_ms >= CLOSED_MS;
	if (traced->streams[0].has_first && traced->seen == 1 &&
	    idle_ms >= UNANSWERED_MS)
		return true;
	return (traced->n_closes || traced->n_fins == BOTH) &&
	       idle_ms >= HALF_CLOSED_MS;
}

struct trace_tuple traced_tuple(const struct trace_report *report)
{
	const bool is_icmp = report->proto == IP_PROTO_ICMP ||
			     report->proto == IP_PROTO_ICMPV6;
	const bool is_turned =
		is_icmp ? report->is_reply :
			  trace_is_lower(&report->dst, report->dst_port,
					 &report->src, report->src_port);
	struct trace_tuple tuple = { .proto = report->proto };

	tuple.addrs[is_turned] = report->src;
	tuple.addrs[!is_turned] = report->dst;
	tuple.ports[is_turned] = report->src_port;
	tuple.ports[!is_turned] = report->dst_port;
	return tuple;
}
