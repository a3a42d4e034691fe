/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of TCP connections: what the programs measure of each, and what user space reads.
 *
 * There is one entry per connection, interface and tunnel, since another interface sees each
 * segment again. It has both directions. Direction 0 are packets from end 0, which is
 * `key.src`, to end 1; see connection_dir().
 *
 * The table is two arrays that user space can map, of the same number of buckets:
 * `conn_buckets` (struct conn_bucket), and `connections` (struct connection), of which bucket
 * N has those from N * CONN_WAYS on. Only programs write to either. `conn_counters` has a
 * struct conn_counters per CPU, as cpu_states has.
 *
 * Who writes: a packet of direction D writes to `sides[D]`, `state[D]`, and of stats[D] what
 * is said there, so two CPUs with a direction each share no word that both write, but
 * `talker`. A reader copies an entry and checks that `version` was the same before and
 * after, and even, and not 0. All other members grow or are replaced word by word, while they
 * are read.
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

/* config_rtt, and the algorithm that measures round-trip times. */
enum rtt_mode {
	RTT_OFF,  /* there is no table: its maps have one entry */
	RTT_RING, /* timers in the connection's entry, see rtt/timers.h */
};

enum {
	CONN_TIMERS = 4,
	CONN_GAPS = 3,
	CONN_WAYS = 8,
	CONN_HIST = 16,
	CONN_HIST_SHIFT = 14,

	/*
	 * Durations are in units of 64 ns, in 32 bits: up to 274 s, and CONN_LATENCY_MAX
	 * for what is longer.
	 */
	CONN_LATENCY_SHIFT = 6,
	/* Times that only idleness and windows are computed from are in units of 2^20 ns. */
	CONN_TICK_SHIFT = 20,
	CONN_MIN_WINDOW =
		9537, /* ticks: 10 s, of each bucket of the windowed minimum */
	CONN_RATE_WINDOW = 95, /* ticks: 99.6 ms, in which the peak rate is */
	/* When an entry was last seen, in its bucket: units of 2^30 ns, in 14 bits. */
	CONN_AGE_SHIFT = 30,
	CONN_AGE_BITS = 14,
};

#define CONN_LATENCY_MAX 0xffffffffU

/* Of one direction: what its packets have shown. */
enum conn_state {
	CONN_SEEN = 1 << 0, /* `next` is known */
	CONN_SYN = 1 << 1, /* a SYN, also one with ACK: nothing of it came before us */
	CONN_ACKED = 1 << 2, /* `acked` is known */
	CONN_FIN = 1 << 3,
	CONN_RST = 1 << 4,
	CONN_SYNCED = 1 << 5, /* what is above `next` is new: segments may be timed */
	CONN_SYNCING = 1 << 6, /* the first half of that, see rtt/segments.h */
	CONN_CLEAN = 1 << 7, /* its last turn began when all of the other's data was acknowledged */
};

/* `talker` and `opener` */
enum { CONN_NEITHER = 2 };

/*
 * Written by packets of its direction, on one cache line: the data that they carry, and what
 * they acknowledge of the other direction's.
 */
struct conn_side {
	__u32 next;   /* the highest sequence number seen, plus 1 */
	__u32 acked;  /* the highest acknowledgment number seen */
	__u16 window; /* as in the header, unscaled */
	__u8 head; /* timers armed; the next one is targets[head % CONN_TIMERS] */
	__u8 tail; /* timers of the other direction that were acknowledged or dropped */
	__u32 window_end; /* ticks: of the window of the rate, in which its last packet came */
	__u32 targets[CONN_TIMERS]; /* acknowledged when `acked` is this or more */
	__u64 armed_ns[CONN_TIMERS]; /* CLOCK_BOOTTIME */
};

_Static_assert(sizeof(struct conn_side) == CACHE_LINE, "one cache line");

/* A distribution of durations, in units of 64 ns. All are 0 while n is. */
struct conn_latency {
	__u64 sum;
	__u32 n;    /* samples */
	__u32 last; /* the newest sample */
	__u32 smoothed; /* moving average: each sample is an eighth (RFC 6298, 2.3) */
	__u32 max;
	__u32 min;	    /* of the current window, ... */
	__u32 previous_min; /* ... and of the one before; 0: that had no sample */
	__u32 min_start;    /* ticks: when the current window began */
	__u32 reserved;
	__u32 hist[CONN_HIST]; /* [0]: < 2^14 ns (16 us), [i]: < 2^(14 + i) ns, [15]: all longer ones */
};

/* A range of sequence numbers below `next` that did not come; empty if they are equal. */
struct conn_gap {
	__u32 start;
	__u32 end;
};

/* Of direction D. Written by packets of direction D, except `rtt` and `handshake`. */
struct conn_stats {
	/*
	 * From a segment of direction D to its acknowledgment, both as seen here: the leg from
	 * here to the end that D leads to, and back. Written by the other direction.
	 */
	struct conn_latency rtt;
	/*
	 * From the last byte of the other direction's data to the first byte of D's answer.
	 * If D's sender is the server, it is what the server takes, and the way there and
	 * back; if it is the client, how long that thinks. Only where each side speaks in turn:
	 * an answer begins after all data before it was acknowledged.
	 */
	struct conn_latency turn;
	__u64 data_bytes; /* when the current window began: see conn_data_bytes() */
	__u64 retransmitted_bytes; /* that were seen here before */
	__u64 data_ns; /* when the segment before data_end came; 0: not exactly known */
	__u64 tsval_ns; /* when the segment with timestamp `tsval` came; 0: none is awaited */
	__u32 data_end; /* of the last segment with PSH or FIN; data_ns is valid if this is `next` */
	__u32 handshake; /* from D's SYN to the answer; 0: not seen. Also a sample of `rtt` */
	__u32 retransmitted; /* segments with bytes that were seen here before */
	__u32 out_of_order; /* segments that came late, or again, and fill a gap */
	__u32 duplicate_acks; /* RFC 5681, 2 */
	__u32 zero_windows;   /* times that the window became 0 */
	__u32 syn_retries;
	__u32 overlaps; /* turns that began before the other side had finished */
	__u32 peak_bytes;  /* most data in one CONN_RATE_WINDOW */
	__u32 isn;	   /* of the SYN, if the state has CONN_SYN */
	__u32 window_next; /* what `next` was when the current window began */
	__u32 tsval;
	struct conn_gap gaps[CONN_GAPS];
};

struct connection {
	/*
	 * That of a packet of direction 0, without what may differ by direction: KEY_EGRESS,
	 * KEY_AGAIN, the number of the rate and outer_hash.
	 */
	struct flow_key key;
	__u16 version; /* 0: never used. Odd: an entry is being made. Else it has one */
	__u8 hooks[2]; /* 1: the direction comes in; 2: it goes out; packets at the other hook are not looked at */
	__u8 state[2]; /* enum conn_state of each direction */
	__u8 talker;   /* the direction of the newest data, or CONN_NEITHER */
	__u8 opener; /* the direction of the first SYN, or CONN_NEITHER: no SYN came */
	struct conn_side sides[2];
	__u64 born_ns; /* the entry was made: CLOCK_BOOTTIME. It identifies the connection */
	__u64 reserved;
	struct conn_stats stats[2];
};

_Static_assert(sizeof(struct connection) == 13 * CACHE_LINE, "no padding");

/* Which connections give their place to others first. */
enum conn_class {
	CONN_HALF_OPEN, /* the ends have not both acknowledged something yet */
	CONN_OPEN,
	CONN_CLOSED, /* both have sent FIN, or one RST */
};

/*
 * A bucket: what is needed to find a connection that is not at its first place, and to choose
 * which one gives its place to another.
 */
struct conn_bucket {
	__u32 tags[CONN_WAYS]; /* of the hash; 0: never used */
	__u16 ages[CONN_WAYS]; /* enum conn_class << CONN_AGE_BITS | when it was last seen */
	__u32 busy; /* programs that want to make an entry; 1: one has it */
	__u32 reserved[3];
};

_Static_assert(sizeof(struct conn_bucket) == CACHE_LINE, "one cache line");

/* Of one CPU. */
struct conn_counters {
	__u64 created;
	/*
	 * Entries whose place another connection took: of handshakes that were not completed,
	 * or data that was not answered; of connections that were closed; of idle ones.
	 */
	__u64 evicted_half_open;
	__u64 evicted_closed;
	__u64 evicted_idle;
	__u64 refused;	 /* packets of connections that no place was free for */
	__u64 contended; /* packets whose bucket another CPU was changing */
	__u64 reserved[2];
};

/*
 * Whether packets with @key are of direction 0 or 1: end 0 has the lower port; with equal
 * ports, the lower address, as two little-endian words, the second of them first. < 0: both
 * ends are the same, which is not observed.
 */
static __always_inline int connection_dir(const struct flow_key *key)
{
	const __u64 *src = key->src.lanes, *dst = key->dst.lanes;

	if (key->src_port != key->dst_port)
		return key->src_port > key->dst_port;
	if (src[1] != dst[1])
		return src[1] > dst[1];
	return src[0] != dst[0] ? src[0] > dst[0] : -1;
}

/* The key of the connection that packets with @key belong to. */
static __always_inline struct flow_key connection_key(const struct flow_key *key,
						      int dir)
{
	struct flow_key canonical = *key;

	if (dir) {
		canonical.src = key->dst;
		canonical.dst = key->src;
		canonical.src_port = key->dst_port;
		canonical.dst_port = key->src_port;
	}
	canonical.flags = key->flags & ~(KEY_EGRESS | KEY_AGAIN);
	canonical.vlan = key->vlan & ((1 << KEY_RATE_SHIFT) - 1);
	canonical.rate_high = 0;
	canonical.outer_hash = 0;
	return canonical;
}

/* Bytes of data that direction @dir has carried, each counted once. */
static __always_inline __u64 conn_data_bytes(const struct connection *conn,
					     int dir)
{
	const struct conn_stats *stats = &conn->stats[dir];
	__u32 next = conn->sides[dir].next - !!(conn->state[dir] & CONN_FIN);

	return stats->data_bytes + (__u32)(next - stats->window_next);
}

/* The least sample of the last 10 to 20 s before the newest one; 0: there is none. */
static __always_inline __u32 conn_min(const struct conn_latency *latency)
{
	__u32 previous = latency->previous_min;

	return previous && previous < latency->min ? previous : latency->min;
}

#endif
