/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules about measurements of connections, which the programs evaluate for each sample, and alerts,
 * which they report. src/lib/alerts makes rules from text.
 *
 * Rules are in two tables, of which the programs read one while user space writes the other.
 * A rule counts, and limits its alerts, in a slot of its own, which it keeps when rules
 * beside it change.
 */
#ifndef NETOBS_BPF_ALERT_H
#define NETOBS_BPF_ALERT_H

#include "bpf/types.h"

/* Metrics of rules, with their units. */
enum alert_metric {
	ALERT_RTT, /* in units of 64 ns, like all durations of connections */
	ALERT_APP_LATENCY, /* in units of 64 ns: conn_app_latency() */
	ALERT_RETRANSMITS, /* parts per million of the bytes in about a second */
	ALERT_RATE,	   /* bytes of data in a CONN_RATE_WINDOW */
	ALERT_METRICS,
};

enum {
	ALERT_RULES_MAX = 128,
	ALERT_SLOTS = 256,
	ALERT_FILTERS_MAX = 64,
	ALERT_SAMPLES_MAX = 8, /* M of "for N of M" */
	/* Indexed by metric, by whether thresholds are multiples, and by whether rules are plain. */
	ALERT_KINDS = 4 * ALERT_METRICS,
	ALERT_RATIO_SHIFT = 8, /* of a threshold that is a multiple of the baseline */
	ALERT_LOSS_WINDOW =
		954, /* ticks: 1 s, in which retransmissions are summed up */
	ALERT_HOLD_WAYS = 8,
	ALERT_HOLD_BUCKETS = 8192,
	/* Ticks of 25 h: a hold of 24 h plus an hour, as the clock of another CPU may be ahead. */
	ALERT_HOLD_MAX = 82 << 20,
	ALERT_RING_BYTES = 256 << 10,
};

struct alert_rule {
	__u64 period_ns; /* average time between alerts; 0: no limit */
	__u64 burst_ns;	 /* alerts may be ahead of that average by so much */
	__u32 hold; /* ticks without further alerts of the same connection */
	__u32 threshold; /* samples above it break the rule; a ratio: in 1 / 2^ALERT_RATIO_SHIFT */
	__u32 life; /* number of this use of the slot: each rule that gets the slot has another */
	__u8 slot;
	__u8 needed; /* so many samples must be over the threshold, ... */
	__u8 among;  /* ... of so many newest ones */
	__u8 filter; /* bit of the verdict, plus 1; 0: no filter, all connections */
};

_Static_assert(ALERT_SLOTS <= 1 << 8, "a byte is enough");

/*
 * Rules of a kind are adjacent, by increasing thresholds, so the rules of a kind that a sample breaks
 * are its first ones; first[alert_kind()] is the index of the first. A plain rule depends on the
 * sample alone: neither on earlier samples nor on a filter.
 */
struct alert_table {
	__u32 n;
	__u32 n_filters;
	__u32 epoch; /* epoch of the filters: verdicts of other epochs are void */
	__u32 history; /* metrics whose samples are kept: 1 << enum alert_metric, or-ed */
	__u32 metrics; /* metrics that have rules: 1 << enum alert_metric, or-ed */
	__u16 kinds;  /* kinds that have rules: 1 << alert_kind(), or-ed */
	__u16 serial; /* serial number of the table, never 0 */
	__u32 number; /* index of the table: 0 or 1 */
	/* A metric's number changes, never to 0, when rules need samples after none were kept. */
	__u8 lives[ALERT_METRICS];
	__u16 first[ALERT_KINDS + 1];
	/* Thresholds of the rules of each kind; the last one is repeated to the end. */
	__u32 thresholds[ALERT_KINDS][ALERT_RULES_MAX];
	struct alert_rule rules[ALERT_RULES_MAX];
};

/* @is_ratio, @is_plain: 0 or 1 */
static __always_inline __u32 alert_kind(__u32 metric, __u32 is_ratio,
					__u32 is_plain)
{
	return 4 * metric + 2 * is_ratio + is_plain;
}

/* The map has one element of this type. */
struct alert_tables {
	__u32 active; /* the table that programs read */
	__u32 reserved;
	struct alert_table tables[2];
};

/* Rate limit of a slot, shared by all CPUs. Two alerts that pass at the same moment may count as one. */
struct alert_limit {
	__u64 next_ns; /* when the next alert would be due */
	__u64 reserved[7];
};

/* Counters of a slot on a CPU. */
struct alert_count {
	__u64 broken; /* samples that broke the rule: the sum of all below */
	__u64 fired;  /* alerts that were reported */
	/* Not reported: the rule had reported the connection already, reached its limit, or
	 * the reader was late. */
	__u64 held;
	__u64 limited;
	__u64 lost;
	__u64 reserved[3];
};

_Static_assert(sizeof(struct alert_count) == CACHE_LINE, "a rule has its own");

/*
 * Counters of a plain rule in a table, on a CPU: of samples that broke this rule and all plain
 * rules of its kind before it, but none after it. So one count serves any number of rules.
 */
struct alert_prefix {
	__u64 broken;
	/* Broken samples for which all of the rules were silent, or at their limit. */
	__u64 held;
	__u64 limited;
	__u64 reserved;
};

/* On a CPU, for the plain rules of a kind: the rules up to `last` are at their limit until `until_ns`. */
struct alert_exhausted {
	__u64 until_ns;
	__u16 last;   /* number of the rule */
	__u16 serial; /* of the table; 0: nothing is noted */
	__u32 reserved;
	__u64 soonest_ns; /* the earliest time at which a rule of the current sample may report */
};

/* A rule that is silent about a connection. */
struct alert_hold {
	__u64 id; /* of the rule's slot and the connection: alert_hold_id() */
	__u32 until; /* ticks */
	__u32 life;  /* of the rule */
};

struct alert_hold_bucket {
	struct alert_hold holds[ALERT_HOLD_WAYS];
};

/* Samples before the newest one, of one metric and direction. */
struct alert_history {
	__u32 samples[ALERT_SAMPLES_MAX]; /* a ring */
};

/* The current window of retransmissions of a direction: values at its beginning. */
struct alert_loss {
	__u32 start; /* ticks; 0: there is no window */
	__u32 bytes; /* conn_data_bytes(), the lower half */
	__u32 again; /* conn_stats.retransmitted_bytes */
};

/* Alert state of a connection, by the number of its body; void unless born_ns is equal. */
struct alert_state {
	__u64 born_ns;
	__u64 verdict; /* filters that its first packet matches */
	__u32 epoch;   /* of the verdict; 0: there is no verdict */
	/* Bytes, not bits: two CPUs may change the state, one per direction. */
	__u8 alerted[ALERT_METRICS]; /* the connection had an alert of the metric: rules may be silent */
	__u8 lives[2][ALERT_METRICS]; /* see alert_renew() */
	__u8 kept[2][ALERT_METRICS]; /* index of the next sample in the history, see alert_remember() */
	struct alert_loss loss[2];
	__u64 quiet[2 * ALERT_METRICS]; /* by kind of plain rules: struct alert_quiet */
	struct alert_history histories[2][ALERT_METRICS];
};

_Static_assert(sizeof(struct alert_state) == 6 * CACHE_LINE, "no padding");

/* All plain rules of a kind up to `last` are silent about a connection until `until`. One word. */
struct alert_quiet {
	__u32 until;  /* ticks */
	__u16 last;   /* number of the rule */
	__u16 serial; /* of the table; 0: nothing is noted */
};

union alert_quiet_word {
	struct alert_quiet quiet;
	__u64 word;
};

/* An event in the ring buffer. */
struct alert_event {
	struct flow_key key; /* of the connection */
	__u64 time_ns;	     /* of the sample, by the programs' clock */
	__u64 born_ns;	     /* of the connection */
	__u32 value;	     /* the sample */
	__u32 baseline; /* of durations: the least of the last 10 to 20 s; else 0 */
	__u32 hits; /* samples over the threshold, among the rule's newest ones */
	__u16 slot;
	__u8 metric;
	__u8 dir;    /* the direction of the data */
	__u8 client; /* direction in which the client sends */
	__u8 reserved[3];
	__u32 life; /* alert_rule.life */
};

#endif
