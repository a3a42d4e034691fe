/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A TCP segment, or a buffer that has or becomes several, as the programs see it. */
#ifndef NETOBS_BPF_RTT_SEGMENT_H
#define NETOBS_BPF_RTT_SEGMENT_H

#include "bpf/connection.h"
#include "bpf/parse/headers.h"

enum { TCP_PSH = 0x08 };

enum { TIMED_PER_TICK = 64 };

/* Samples that a segment gave, for rules about connections: segment.taken. */
enum segment_taken {
	TAKEN_FIRST = 1 << 0, /* first segment of its direction */
	TAKEN_RTT = 1 << 1, /* round-trip time, of the direction that it acknowledges */
	TAKEN_TURN = 1 << 2,   /* response time, of its own direction */
	TAKEN_WINDOW = 1 << 3, /* rate, of the window that has ended */
};

/* Times that a segment has set, which move on when it leaves a queue of this host: segment.leaves. */
enum segment_leaves {
	LEAVES_TIMER = 1 << 0,
	LEAVES_STAMP = 1 << 1,
	LEAVES_TURN = 1 << 2,
	LEAVES_ECHO = 1 << 3,
	LEAVES_TIMER_SHIFT = 4, /* from here on: which timer */
};

enum { LEAVING_WAYS = 4 };

/* A note of such a segment: see leave.h. */
struct leaving {
	__u32 seq; /* of an echo: identifier and number */
	__u32 ack; /* of an echo: the end of the destination's address */
	__u32 place;
	__u16 netns; /* index; other namespaces are a part of the way */
	__u16 tick;
};

struct leaving_bucket {
	struct leaving of[LEAVING_WAYS];
};

_Static_assert(sizeof(struct leaving_bucket) == CACHE_LINE, "one cache line");

struct segment {
	__u32 seq;
	__u32 ack;
	__u32 len; /* payload of all segments on the wire */
	__u16 mss; /* payload of each except the last; 0: it is one segment */
	__u16 window;
	__u8 flags;	 /* enum tcp_flag */
	__u8 taken;	 /* enum segment_taken */
	__u8 leaves;	 /* enum segment_leaves, and which timer */
	__u32 tick;	 /* of @now */
	__u8 may_time;	 /* the clock may be read for it */
	__u8 has_stamps; /* `tsval` and `tsecr` are known: stamps_are_needed() */
	__u8 header;	 /* length of the TCP header, in words */
	__u8 scale;	 /* enum conn_scale, of a SYN */
	__u32 window_bytes; /* data in the window that has ended */
	__u32 tsval;
	__u32 tsecr;
	__u64 now; /* ns: a kernel tick before the segment came at most, and not after */
	__u64 exact; /* ns: segment_time(); 0: not read yet */
};

/* The time at which the segment came. The includer defines it; reading a clock is dear. */
static __always_inline __u64 read_exact_clock(const struct segment *segment);

static __always_inline __u64 segment_time(struct segment *segment)
{
	if (!segment->exact)
		segment->exact = read_exact_clock(segment);
	return segment->exact;
}

/* @return the sequence numbers that a segment takes (RFC 9293, 3.4) */
static __always_inline __u32 segment_span(const struct segment *segment)
{
	__u32 span = segment->len;

	if (segment->flags & (TCP_SYN | TCP_FIN))
		span += !!(segment->flags & TCP_SYN) +
			!!(segment->flags & TCP_FIN);
	return span;
}

/* @return how many segments on the wire carry @bytes */
static __always_inline __u32 segment_count(const struct segment *segment,
					   __u32 bytes)
{
	return segment->mss ? (bytes + segment->mss - 1) / segment->mss : 1;
}

/* Sequence numbers wrap (RFC 9293, 3.4): differences of less than 2^31 are signed. */
static __always_inline __s32 seq_diff(__u32 a, __u32 b)
{
	return (__s32)(a - b);
}

/* The progress of a connection: enum conn_class. */

/* Bits of the states that determine the class. */
enum { CONN_CLASS = CONN_ACKED | CONN_FIN | CONN_RST };

/*
 * @return whether a direction has sent more than SYN or SYN+ACK: for the client, its first
 * acknowledgment
 */
static __always_inline bool is_past_syn(const struct connection *conn, int dir)
{
	__u16 state = conn->head->state[dir];

	if (!(state & CONN_SYN))
		return state & CONN_SEEN;
	return state & CONN_ACKED && conn->head->opener == dir;
}

static __always_inline enum conn_class conn_class(const struct connection *conn)
{
	__u16 both = conn->head->state[0] & conn->head->state[1];
	__u16 any = conn->head->state[0] | conn->head->state[1];

	if (any & CONN_RST || both & CONN_FIN)
		return CONN_CLOSED;
	if (both & CONN_ACKED)
		return CONN_OPEN;
	return is_past_syn(conn, 0) || is_past_syn(conn, 1) ? CONN_UNANSWERED :
							      CONN_HALF_OPEN;
}

#endif
