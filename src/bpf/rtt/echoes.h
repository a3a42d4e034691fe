/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round-trip times of echo requests (RFC 792, RFC 4443): from a request to the reply with its
 * identifier and sequence number. Pure: the same header builds for the host.
 *
 * Each timer of a direction is for one request. Its writers differ from those of a timer of TCP:
 * a request arms it, and the reply marks it as answered. A sequence number that came twice within
 * ECHO_EXPIRY_NS is not timed, since the reply may answer either request.
 */
#ifndef NETOBS_BPF_RTT_ECHOES_H
#define NETOBS_BPF_RTT_ECHOES_H

#include "acks.h"
#include "bpf/once.h"
#include "bpf/parse/echo.h"

/* Marks in the low bits of conn_timers.armed_ns. */
enum {
	ECHO_ANSWERED = 1,
	ECHO_TWICE = 2,
	ECHO_MARKS = 3,
};

#define ECHO_EXPIRY_NS 10000000000ULL

/*
 * @return the timer for a request: a free one, else the oldest whose reply is not awaited any more,
 *         else CONN_TIMERS. If the request was seen before, it is marked as repeated, and the
 *         result is CONN_TIMERS, too.
 */
static __always_inline __u32 echo_place(struct conn_timers *timers,
					__u32 number, __u64 now)
{
	__u32 place = CONN_TIMERS;
	__u64 oldest = ~0ULL;

	for (__u32 i = 0; i < CONN_TIMERS; i++) {
		__u64 armed = timers->armed_ns[i];
		bool is_over = now - armed > ECHO_EXPIRY_NS &&
			       now > armed; /* the clocks of two CPUs differ */

		if (armed && !is_over && timers->targets[i] == number) {
			WRITE_ONCE(timers->armed_ns[i],
				   (now & ~(__u64)ECHO_MARKS) | ECHO_TWICE);
			return CONN_TIMERS;
		}
		if (armed && !is_over && !(armed & ECHO_ANSWERED))
			continue;
		if (armed < oldest) {
			oldest = armed;
			place = i;
		}
	}
	return place;
}

/* @segment: its `seq` is identifier and sequence number. */
static __always_inline void echo_request(const struct connection *conn, int dir,
					 struct segment *segment)
{
	struct conn_timers *timers = &conn->body->timers[dir];
	__u32 place = echo_place(timers, segment->seq, segment->now);

	if (place >= CONN_TIMERS || !segment->may_time)
		return;
	place &= CONN_TIMERS - 1; /* for the verifier */
	/* A reply to another request must not see the new number with the old time. */
	WRITE_ONCE(timers->armed_ns[place], 0);
	asm volatile("" ::: "memory");
	timers->targets[place] = segment->seq;
	asm volatile("" ::: "memory");
	WRITE_ONCE(timers->armed_ns[place],
		   segment_time(segment) & ~(__u64)ECHO_MARKS);
	segment->leaves = LEAVES_ECHO | place << LEAVES_TIMER_SHIFT;
}

static __always_inline void echo_reply(const struct connection *conn, int dir,
				       struct segment *segment)
{
	struct conn_timers *timers = &conn->body->timers[!dir];

	for (__u32 i = 0; i < CONN_TIMERS; i++) {
		__u64 armed = READ_ONCE(timers->armed_ns[i]);

		if (!armed || READ_ONCE(timers->targets[i]) != segment->seq)
			continue;
		if (armed & ECHO_MARKS || READ_ONCE(timers->armed_ns[i]) != armed)
			return;
		WRITE_ONCE(timers->armed_ns[i], armed | ECHO_ANSWERED);
		if (segment->now <= armed + ECHO_EXPIRY_NS)
			ack_sample(conn, dir, segment, armed, false);
		return;
	}
}

/*
 * The entry stays half-open: anyone can send requests from any address, and a host answers them
 * all. So it evicts no open connection, and any connection may evict it.
 */
static __always_inline void echo_observe(const struct connection *conn, int dir,
					 struct segment *segment,
					 enum echo_kind kind)
{
	if (kind == ECHO_REQUEST)
		echo_request(conn, dir, segment);
	else
		echo_reply(conn, dir, segment);
}

#endif
