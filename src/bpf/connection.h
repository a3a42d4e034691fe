/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of TCP connections: the programs write their measurements, user space reads them.
 *
 * Echo requests and replies between two addresses (ICMP, ICMPv6) are a connection without ports, of
 * which only the round-trip times are measured.
 *
 * There is one entry per connection, interface and tunnel, since another interface sees each
 * segment again. It has both directions. Direction 0 are packets from end 0, which is
 * `key.src` of its body, to end 1; see connection_dir().
 *
 * An entry has three parts, so that the CPU's cache holds the hot parts of thousands of
 * connections. Every packet needs the head, one cache line. Rates are touched by data after a
 * window of 100 ms has ended, and the body when a segment is timed, a sample is taken, or
 * something unusual happens, such as a retransmission.
 *
 * The table consists of four arrays that user space can map: `conn_buckets` (struct conn_bucket),
 * `conn_heads`, `conn_rates` and `conn_bodies`. Bucket N has the CONN_WAYS elements from
 * N * CONN_WAYS on of `conn_heads` and `conn_rates`. User space only reads them, except to remove
 * entries that have gone (lib/engine/connections.h). `conn_counters` has a struct conn_counters for each
 * CPU, as cpu_states.
 *
 * Bodies are nine tenths of the table, so there are only as many as connections need: `conn_bodies`
 * consists of parts, which user space adds while it grows. A place takes a body when a
 * connection gets it, unless it has that of an earlier one: `rates.body`. User space puts the numbers of
 * free bodies into the queue `conn_free`, some with CONN_BODY_NOTICE: when one of these is taken, user
 * space is woken.
 *
 * Writers: a packet of direction D writes to `sides[D]`, `state[D]`, `timers[D]`, and the members
 * of stats[D] as noted there. So two CPUs with one direction each write no common word but
 * `talker`. A reader copies an entry and checks that `version` was the same before and after,
 * even, and not 0. All other members grow or are replaced word by word while they are read.
 */
#ifndef NETOBS_BPF_CONNECTION_H
#define NETOBS_BPF_CONNECTION_H

#include "bpf/types.h"

#ifndef __bpf__
#include <stdbool.h>
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

enum {
	CONN_TIMERS = 4,
	CONN_GAPS = 7,
	CONN_WAYS = 8,
	CONN_HIST = 16,
	CONN_HIST_SHIFT = 14,

	/*
	 * Durations have 32 bits, in units of 64 ns: up to 274 s; CONN_LATENCY_MAX stands
	 * for longer ones.
	 */
	CONN_LATENCY_SHIFT = 6,
	/* Times that only idleness and windows are computed from are in units of 2^20 ns. */
	CONN_TICK_SHIFT = 20,
	CONN_DUE_SHIFT = 16,
	CONN_MIN_WINDOW =
		9537, /* ticks: 10 s, of each bucket of the windowed minimum */
	CONN_RATE_WINDOW = 95, /* ticks: 99.6 ms, in which the peak rate is */
	/* Time when an entry was last seen, in its bucket: units of 2^30 ns, in 14 bits. */
	CONN_AGE_SHIFT = 30,
	CONN_AGE_BITS = 14,
};

#define CONN_BODY_NOTICE 0x80000000U
#define CONN_LATENCY_MAX 0xffffffffU

/* State of a direction, from its packets. */
enum conn_state {
	CONN_SEEN = 1 << 0, /* `next` is known */
	CONN_SYN = 1 << 1, /* it had a SYN, also one with ACK: no data before it is missing */
	CONN_ACKED = 1 << 2, /* `acked` is known */
	CONN_FIN = 1 << 3,
	CONN_RST = 1 << 4,
	CONN_SYNCED = 1 << 5, /* data above `next` is new: segments may be timed, see rtt/data.h */
	/* Its packets may wait in a queue of this host unseen after they were timed. */
	CONN_QUEUED = 1 << 6,
	CONN_CLEAN = 1 << 7, /* its last turn began after all data of the other direction was acknowledged */
	CONN_DATA_TIMED = 1 << 8, /* `data_ns` is the time of its newest data */
	/* The packets come in or go out; packets at the other hook are ignored. */
	CONN_INGRESS = 1 << 9,
	CONN_EGRESS = 1 << 10,
	CONN_MOVED = 1 << 11, /* new data came in the current window of the rate */
	CONN_REPEATS = 1 << 12, /* its last acknowledgment was a duplicate */
	/* See rtt/stamps.h. */
	CONN_RESENT = 1 << 13, /* data up to `resent_end` was sent again, and is not acknowledged */
	CONN_STAMPS_SEEN = 1 << 14, /* `tsval_newest` is known */
	CONN_STAMPED = 1 << 15,	    /* `tsval` times a segment */
};

/* Window scale: the shift count in the option of a SYN (RFC 7323, 2.2), plus SCALE_0. */
enum conn_scale {
	SCALE_UNKNOWN,
	SCALE_NONE, /* the SYN has no such option */
	SCALE_0,
	SCALE_BITS_MAX = 14,
};

/* `talker` and `opener` */
enum { CONN_NEITHER = 2 };

/* Sequence state of a direction, written by its packets. */
struct conn_side {
	__u32 next;  /* the highest sequence number seen, plus 1 */
	__u32 acked; /* the highest acknowledgment number seen */
	__u32 awaited; /* acknowledgments below this end no timer of the other direction */
	__u32 due; /* when the next segment may be timed: units of 2^CONN_DUE_SHIFT ns */
	__u32 window_end; /* ticks: end of the rate's window of the last packet */
	__u16 window;	  /* as in the header, unscaled */
	__u8 head; /* timers armed; the next one is targets[head % CONN_TIMERS] */
	__u8 tail; /* timers of the other direction that were acknowledged or dropped */
};

/* The part of an entry that every packet needs. */
struct conn_head {
	__u64 check;	/* of the key, see store/conn_places.h */
	__u16 version;	/* 0: never used; odd: being written; else valid */
	__u16 state[2]; /* enum conn_state of each direction */
	__u8 talker;	/* the direction of the newest data, or CONN_NEITHER */
	__u8 opener; /* the direction of the first SYN, or CONN_NEITHER: no SYN came */
	struct conn_side sides[2];
};

_Static_assert(sizeof(struct conn_head) == CACHE_LINE, "one cache line");

/* Data in the current window of direction D. Written by packets of D. */
struct conn_rate {
	__u32 window_next; /* `next` when the window began */
	__u32 peak_bytes;  /* most data in one CONN_RATE_WINDOW */
};

struct conn_rates {
	struct conn_rate sides[2];
	__u32 body; /* number of the slot's body, from 1 on; 0: none yet */
	__u32 reserved;
};

/* Timed segments of a direction, written by its packets. For echoes, see rtt/echoes.h. */
struct conn_timers {
	__u32 targets[CONN_TIMERS]; /* acknowledged when `acked` is this or more */
	__u64 armed_ns[CONN_TIMERS]; /* CLOCK_BOOTTIME */
};

/* A distribution of durations, in units of 64 ns. If n is 0, all members are 0. */
struct conn_latency {
	__u64 sum;
	__u32 n;    /* samples */
	__u32 last; /* the newest sample */
	__u32 smoothed; /* moving average: each sample is an eighth (RFC 6298, 2.3) */
	__u32 max;
	__u32 min;	    /* of the current window, ... */
	__u32 previous_min; /* ... and of the previous window; 0: it had no sample */
	__u32 min_start; /* ticks: when the current window began */
	__u32 reserved;
	__u32 hist[CONN_HIST]; /* [0]: < 2^14 ns (16 us), [i]: < 2^(14 + i) ns, [15]: all longer ones */
};

/* Sequence numbers below `next` that were not seen; empty if start and end are equal. */
struct conn_gap {
	__u32 start;
	__u32 end;
};

/* Measurements of direction D. Written by packets of D, except `rtt` and `handshake`. */
struct conn_stats {
	__u64 data_bytes; /* data below `data_next`, see conn_data_bytes() */
	__u64 data_ns; /* when the newest data came, if the state has CONN_DATA_TIMED */
	__u32 isn; /* of the SYN, if the state has CONN_SYN */
	__u32 handshake; /* from D's SYN to the answer; 0: not seen. Also a sample of `rtt` */
	struct conn_gap gaps[CONN_GAPS];
	/* Covers all gaps that do not fit into `gaps`, and data between them. */
	struct conn_gap unlisted;
	__u32 data_next;     /* data below it is counted in `data_bytes` */
	__u32 retransmitted; /* segments with bytes that were seen here before */
	/*
	 * Time from a segment of direction D to its acknowledgment, both as seen here: the round
	 * trip from here to the receiver of D. Written by the other direction.
	 */
	struct conn_latency rtt;
	/*
	 * Time from the last byte of the other direction's data to the first byte of D's answer:
	 * if D's sender is the server, it is the response time, which has the way from here to
	 * the server and back in it, see conn_app_latency(); if it is the client, its think
	 * time. Only where each side speaks in turn: an answer begins after all data before
	 * it was acknowledged.
	 */
	struct conn_latency turn;
	__u64 retransmitted_bytes; /* bytes in retransmitted segments that were seen here before */
	__u64 tsval_ns; /* when the segment with timestamp `tsval` came */
	__u32 tsval;
	__u32 tsval_end; /* where the segment ends */
	__u32 tsval_newest;
	__u32 resent_end;
	__u32 out_of_order; /* segments that came late, or again, and fill a gap */
	__u32 duplicate_acks; /* RFC 5681, 2 */
	__u32 zero_windows;   /* times that the window became 0 */
	__u32 syn_retries;
	__u32 overlaps; /* turns that began before the other side had finished */
	/* Segments below `next`, of data in `unlisted`: which of the two counts above is unknown. */
	__u32 late_unknown;
	/* Segments that no end of the connection has sent: see rtt/refuse.h. */
	__u32 refused_end; /* end of the newest of these; 0: none */
	__u16 window_max; /* largest in the headers that were checked; not of a SYN */
	__u8 scale : 5; /* enum conn_scale of the SYN */
	__u8 refused_run : 3; /* consecutive refused segments near each other; 0: the last one is a SYN */
	__u8 refused_mark; /* progress_mark() at the last refused segment */
};

/* Connections in one slot differ in born_ns by this at least; alert_hold_id() ignores smaller parts. */
enum { CONN_BORN_STEP_NS = 1 << 10 };

/* The part of an entry that few packets need. */
struct conn_body {
	/*
	 * The key of a packet of direction 0, without the parts that may differ by direction:
	 * KEY_EGRESS, KEY_AGAIN, the number of the rate and outer_hash.
	 */
	struct flow_key key;
	__u64 born_ns; /* when the entry was made: CLOCK_BOOTTIME. Identifies the connection */
	struct conn_timers timers[2];
	struct conn_stats stats[2];
};

_Static_assert(sizeof(struct conn_body) % CACHE_LINE == 0, "no padding");

/* An entry. Its parts are in the table, or in a copy. */
struct connection {
	struct conn_head *head;
	struct conn_rates *rates;
	struct conn_body *body;
};

/* Class of a connection, by which it is evicted: see store/conn_places.h. */
enum conn_class {
	CONN_HALF_OPEN, /* only SYN and SYN+ACK were seen, or echoes: anyone can cause these */
	CONN_OPEN,   /* both ends have acknowledged something */
	CONN_CLOSED, /* both ends have sent FIN, or one has sent RST */
	CONN_UNANSWERED, /* more than a handshake was seen, but only one end has acknowledged */
};

/* A bucket: to find connections that are not in their first slot, and to choose one to evict. */
struct conn_bucket {
	__u32 tags[CONN_WAYS]; /* parts of hashes; 0: never used */
	__u16 ages[CONN_WAYS]; /* enum conn_class << CONN_AGE_BITS | when it was last seen */
	__u32 busy; /* programs that want to make an entry; 1: one may */
	__u32 reserved[3];
};

_Static_assert(sizeof(struct conn_bucket) == CACHE_LINE, "one cache line");

/* Counters of a CPU. */
struct conn_counters {
	__u64 created;
	/*
	 * Entries that were evicted for another connection: half-open ones (the handshake was not
	 * completed, or data not answered), closed ones, and idle ones. A slot in use is never
	 * freed, so `created` minus these three are in use.
	 */
	__u64 evicted_half_open;
	__u64 evicted_closed;
	__u64 evicted_idle;
	__u64 refused; /* packets of connections that found no slot, or no free body */
	__u64 contended; /* packets without an entry, as another CPU was changing their bucket */
	__u64 reserved[2];
};

/* The direction by addresses only: echoes have no ports. */
static __always_inline int addresses_dir(const struct flow_key *key)
{
	const __u64 *src = key->src.lanes, *dst = key->dst.lanes;

	if (src[1] != dst[1])
		return src[1] > dst[1];
	return src[0] != dst[0] ? src[0] > dst[0] : -1;
}

/*
 * @return the direction of packets with @key, 0 or 1: end 0 has the lower port; with equal
 * ports, the lower address, as two little-endian words, the second of them first. < 0: both
 * ends are the same, which is not observed.
 */
static __always_inline int connection_dir(const struct flow_key *key)
{
	if (key->src_port != key->dst_port)
		return key->src_port > key->dst_port;
	return addresses_dir(key);
}

/*
 * Bytes from `data_next` to @next, which is less where the first packet that was seen came
 * behind a FIN, and the FIN was sent again.
 */
static __always_inline __u32 conn_data_since(const struct conn_stats *stats,
					     __u32 next)
{
	__s32 more = next - stats->data_next;

	return more > 0 ? more : 0;
}

/* The direction that the client sends: of the SYN, else to the lower port. */
static __always_inline __u32 conn_client(const struct connection *conn)
{
	const struct conn_head *head = conn->head;

	if (head->opener != CONN_NEITHER)
		return head->opener & 1;
	if ((head->state[0] ^ head->state[1]) & CONN_SYN) /* it is a SYN+ACK */
		return !!(head->state[0] & CONN_SYN);
	return 1;
}

/* @return whether conn_client() is certain: with equal ports, it needs a SYN */
static __always_inline bool conn_knows_client(const struct connection *conn)
{
	const struct conn_head *head = conn->head;
	const struct flow_key *key = &conn->body->key;

	return head->opener != CONN_NEITHER ||
	       (head->state[0] ^ head->state[1]) & CONN_SYN ||
	       key->src_port != key->dst_port;
}

/* @return the end of a direction's data: a FIN has a sequence number, too */
static __always_inline __u32 conn_data_end(const struct conn_head *head, int dir)
{
	return head->sides[dir].next - !!(head->state[dir] & CONN_FIN);
}

/* @return bytes of data in direction @dir, each counted once */
static __always_inline __u64 conn_data_bytes(const struct connection *conn,
					     int dir)
{
	const struct conn_stats *stats = &conn->body->stats[dir];

	return stats->data_bytes +
	       conn_data_since(stats, conn_data_end(conn->head, dir));
}

/* The least sample of the last 10 to 20 s before the newest one; 0: there is none. */
static __always_inline __u32 conn_min(const struct conn_latency *latency)
{
	__u32 previous = latency->previous_min;

	return previous && previous < latency->min ? previous : latency->min;
}

/* @return the round-trip time of the handshake; 0: unknown */
static __always_inline __u32 conn_handshake(const struct connection *conn,
					    __u32 dir)
{
	return conn->head->state[dir & 1] & CONN_QUEUED ?
		       0 :
		       conn->body->stats[dir & 1].handshake;
}

/*
 * @return the round-trip time from here to the receiver of direction @dir, without its delays; 0:
 *         unknown. An end may delay acknowledgments of data, but its kernel acknowledges a SYN or
 *         SYN+ACK at once.
 */
static __always_inline __u32 conn_path_rtt(const struct connection *conn,
					   __u32 dir)
{
	__u32 least = conn_min(&conn->body->stats[dir & 1].rtt);
	__u32 handshake = conn_handshake(conn, dir);

	return handshake < least ? handshake : least & -!!handshake;
}

/*
 * The path RTT to the server, for the response time of its application; @client: the client's
 * direction. Without the handshake, a round-trip time that is shorter than all response times
 * waited for no answer: the path RTT is not longer.
 */
static __always_inline __u32 conn_path(const struct connection *conn, __u32 client)
{
	const struct conn_stats *back = &conn->body->stats[!(client & 1)];
	__u32 least = conn_min(&conn->body->stats[client & 1].rtt);
	__u32 path = conn_path_rtt(conn, client);

	if (path || conn->head->state[client & 1] & CONN_QUEUED)
		return path;
	return least < conn_min(&back->turn) ? least : 0;
}

/* @return the part of the response time @turn that the server itself takes */
static __always_inline __u32 conn_app_latency(__u32 turn, __u32 path)
{
	return turn > path ? turn - path : 0;
}

#endif
