/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All maps. A size of 1 is set by user space before loading. All programs of
 * a context share them, in whatever namespace they are attached.
 */
#ifndef NETOBS_BPF_MAPS_H
#define NETOBS_BPF_MAPS_H

#include "bpf/alert.h"
#include "bpf/connection.h"
#include "bpf/nat.h"
#include "bpf/parse/packet.h"
#include "bpf/rtt/segment.h"
#include "bpf/store/conn_places.h"
#include <bpf/bpf_helpers.h>

/* Indexed by CPU. An array and not a per-CPU one, so that it can be mapped. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpu_states SEC(".maps");

/* The sample that rules are compared with. */
struct alert_sample {
	__u32 value;
	__u32 baseline; /* as in struct alert_event, and the next three */
	__u32 hits;
	__u8 metric;
	__u8 dir;
	__u8 is_ratio; /* compare with the rules for multiples of the baseline */
	__u8 may_hold; /* the connection has had alerts of the metric */
};

/* On cache lines of its own, like `choice`: saves 6 ns per packet with many connections. */
struct noted_segment {
	struct segment segment;
	__u64 hash;	/* of its connection */
	__u64 check;	/* of its connection */
	__u64 timed_at; /* the tick of the clock for `timed` */
	__u32 timed;	/* segments timed in that tick on this CPU */
	__u32 index;	/* first slot of its connection */
	__u8 dir;
	__u8 echo; /* enum echo_kind: an echo, not a TCP segment */
	__u16 is_there;
	__u8 wants_verdict; /* run the filters of alerts on the packet */
	__u8 metrics; /* metrics with samples not taken yet: 1 << enum alert_metric, or-ed */
	__u16 rules; /* index of the table of rules to compare with */
	struct conn_choice choice;
	struct alert_sample sample;
} __attribute__((aligned(CACHE_LINE)));

/*
 * Memory for a packet's fields, for which the stack is too small: part of struct cpu_state, so that
 * both are found at once.
 */
struct scratch {
	struct packet pkt;
	struct packet outer;
	struct noted_segment noted; /* the part of `pkt` that its connection needs */
	struct flow_entry entry;
	struct overflow_page page; /* a page that is not in an overflow table yet */
	__s32 parsed;		   /* the parser's result for `pkt` */
};

_Static_assert(sizeof(struct scratch) <= sizeof(((struct cpu_state *)0)->scratch),
	       "there is room");

/* L1: [generation][CPU], then config_l1_buckets of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_bucket);
} l1_buckets SEC(".maps");

/* The log: [CPU], then config_log_slots of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct log_slot);
} log_slots SEC(".maps");

/*
 * The overflow tables, for entries while a log is full: one per generation, put in by user space.
 * Sizes, not types: COMPAT(<6.2): 5.15 to 6.1 treat a table with BTF as different from one without.
 */
struct overflow_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct overflow_key));
	__uint(value_size, sizeof(struct overflow_page));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, GENERATIONS);
	__type(key, __u32);
	__array(values, struct overflow_table);
} overflows SEC(".maps");

/* Packets that found no free lane of their CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct count);
} unclaimed SEC(".maps");

/* Wakes user space with the number of a CPU when its log fills up. User space sizes it: a page. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} notices SEC(".maps");

/* Counters of filter rules: [CPU], then RULE_SLOTS of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_count);
} rule_counts SEC(".maps");

/* Counters of outcomes at interfaces: [CPU], then OUTCOME_SLOTS of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct outcome_slot);
} outcome_slots SEC(".maps");

/* The table of connections: see connection.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct conn_head);
} conn_heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct conn_rates);
} conn_rates SEC(".maps");

/* A part of the bodies has 1 << config_part_bits of them. */
struct conn_bodies_part {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct conn_body));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct conn_bodies_part);
} conn_bodies SEC(".maps");

/* Numbers of unused bodies, from 1 on. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(value_size, sizeof(__u32));
} conn_free SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct conn_bucket);
} conn_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct conn_counters);
} conn_counters SEC(".maps");

/* Timed segments that may be in a queue of this host: see rtt/leave.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct leaving_bucket);
} leavings SEC(".maps");

/* Inodes of the observed namespaces, and their indexes. User space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} leaving_netns SEC(".maps");

/* Tables of rules about connections: see alert.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alert_tables);
} alert_tables SEC(".maps");

/* Limits, by slot of the rule. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ALERT_SLOTS);
	__type(key, __u32);
	__type(value, struct alert_limit);
} alert_limits SEC(".maps");

/* Counters: [CPU], then ALERT_SLOTS of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alert_count);
} alert_counts SEC(".maps");

/* Prefix counters: [CPU][table], then ALERT_RULES_MAX of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alert_prefix);
} alert_prefixes SEC(".maps");

/* Per CPU, one for each kind of plain rules. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alert_exhausted);
} alert_exhausted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alert_hold_bucket);
} alert_holds SEC(".maps");

/* Alert states, by the number of the body, in parts like these. */
struct alert_states_part {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct alert_state));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct alert_states_part);
} alert_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} alert_events SEC(".maps");

/* Programs with the filters of rules, by enum link_kind; see alerts.bpf.c. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} alert_filters SEC(".maps");

/* Translations: see nat.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nat_notes);
} nat_seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nat_counters);
} nat_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} nat_events SEC(".maps");

/* Indexed by origin_slot(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ORIGIN_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} origins SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u8);
} more_origins SEC(".maps");

/* Old datagrams make room for new ones; their late fragments carry no ports. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fragment_key);
	__type(value, struct fragment_ports);
} fragments SEC(".maps");

/* A tunnel's addresses are read when its flows are; seldom used ones go. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tunnel_key);
	__type(value, struct tunnel_addrs);
} tunnel_addrs SEC(".maps");

#endif
