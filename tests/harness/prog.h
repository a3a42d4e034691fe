/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The flow programs in the kernel, without an interface: packets go in with
 * BPF_PROG_TEST_RUN, flows and counters are read back.
 */
#ifndef HARNESS_PROG_H
#define HARNESS_PROG_H

#include "bpf/alert.h"
#include "bpf/connection.h"
#include "bpf/store/hash.h"
#include "bpf/types.h"
#include "engine/connections.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

struct flows_bpf;
struct ring_buffer;

/* Zero means a default that nothing runs out of. */
enum { PROG_FLOWS = 16384, PROG_PARTS_MAX = 64 };

/* The rate's number in keys, if there is sampling. prog_flows() checks and clears it. */
enum { PROG_RATE = 13 };

/* Without padding, so that two can be compared. */
struct prog_options {
	enum link_kind link;
	enum clock_kind clock;
	__u32 netns;
	__u32 l1_buckets;    /* per CPU and generation; 1 */
	__u32 log_slots;     /* per CPU, a power of two; none */
	__u32 overflow_room; /* pages; PROG_FLOWS */
	enum sampling sampling;
	__u32 sampling_interval; /* all packets */
	__u32 has_egress;	 /* the program for that is loaded, too */
	__u32 has_queues;	 /* timed segments are noted */
	__u32 conn_buckets;	 /* round-trip times are measured; none */
	__u32 conn_parts; /* that their bodies will have, a power of two; one */
	__u32 has_alerts; /* there may be rules about connections */
	__u32 is_general; /* the programs for all options, where others would do */
	__u32 has_nat; /* those for translations, of which test packets have none; Linux 6.2 */
};

struct prog {
	struct flows_bpf *skel;
	struct prog_options options;
	__u32 n_cpus;
	int overflows[GENERATIONS];    /* file descriptors */
	struct cpu_state *cpus;	       /* mapped */
	struct flow_bucket *l1;	       /* mapped */
	struct log_slot *log;	       /* mapped */
	struct conn_head *conn_heads;  /* mapped; of conn_buckets */
	struct conn_rates *conn_rates; /* likewise */
	struct conn_body *conn_bodies[PROG_PARTS_MAX]; /* by part, mapped */
	struct conn_part parts[PROG_PARTS_MAX];
	__u32 part_bits;
	__u32 n_parts;			   /* that there are; one at first */
	struct conn_bucket *conn_buckets;  /* mapped */
	struct alert_tables *alert_tables; /* mapped */
	struct ring_buffer *ring;
	struct ring_buffer *alert_ring;
	void (*on_alert)(void *ctx, const struct alert_event *event); /* or NULL */
	void *on_alert_ctx;
	unsigned int n_notices;
	bool lacks_table; /* a test has removed one */
};

/* Returns 0 or a negated errno, with a line on stderr. */
int prog_open(struct prog *prog, const struct prog_options *options);
void prog_close(struct prog *prog);

/* Forget all flows, fragments and counters; write to generation 0. */
int prog_reset(struct prog *prog);

enum { PROG_FLOW_BYTES = 38 }; /* from the IP header on */

/* The frame of a numbered UDP flow, from ::ffff:@flow. @return its length */
uint32_t prog_flow_frame(uint32_t flow, uint8_t ret_frame[64]);

/* Stay on one CPU from now on: this process and its children. */
int prog_pin(unsigned int cpu);

struct prog_packet {
	const void *bytes;
	size_t len;
	bool egress;
	__u32 repeat; /* 0: once */
	__u32 gso_segs;
	__u32 gso_size;
	__u64 time_ns;	/* CLOCK_PACKET */
	__u32 wire_len; /* CLOCK_PACKET: 0: @len */
};

/* Run once per repeat; the program's verdict goes to @ret_verdict. */
int prog_run(struct prog *prog, const struct prog_packet *packet,
	     __u32 *ret_verdict);

/* Make the programs write to @generation. */
void prog_set_generation(struct prog *prog, __u32 generation);

/* Of all CPUs, in one generation. */
static inline size_t prog_l1_buckets(const struct prog *prog)
{
	return (size_t)prog->n_cpus * prog->options.l1_buckets;
}

/* ---- What they have counted ---------------------------------------------------------- */

/* Entries of one generation, one per key. */
struct prog_flows {
	size_t n;
	struct flow_entry entries[PROG_FLOWS];
};

/* How many of L1's entries are taken on all CPUs. */
size_t prog_l1_used(const struct prog *prog, __u32 generation);

/* A flow in the overflow table, of all CPUs: 0 or -ENOENT. */
int prog_overflow_lookup(const struct prog *prog, __u32 generation,
			 const struct flow_key *key,
			 struct flow_tally *ret_tally);

/* How many entries are in the overflow table. */
size_t prog_overflow_used(const struct prog *prog, __u32 generation);

/* Take a generation's overflow table away from the programs. */
int prog_remove_overflow(struct prog *prog, __u32 generation);

/* Everything of a generation: L1, logs and the overflow table; notices are read. */
int prog_flows(struct prog *prog, __u32 generation, struct prog_flows *ret_flows);
const struct flow_entry *prog_find(const struct prog_flows *flows,
				   const struct flow_key *key);

/* Sum of all CPUs' counters. */
struct counters prog_counters(const struct prog *prog, __u32 generation);

/* What is missing for seen = entries + unparsed + lost; 0 and 0. */
struct count prog_unaccounted(const struct counters *counters,
			      const struct prog_flows *flows);

/* ---- Connections ---------------------------------------------------------------------- */

/* The entry of a connection, by a packet's key; its parts are NULL if there is none. */
struct connection prog_connection(const struct prog *prog,
				  const struct flow_key *key);

/* By the place of a connection; its parts are NULL if its place has no body. */
struct connection prog_connection_at(const struct prog *prog, __u32 place);

/* Add a part of the bodies: 0 or a negated errno. */
int prog_grow(struct prog *prog);

/* The sum of all CPUs' counters of connections. */
struct conn_counters prog_conn_counters(const struct prog *prog);

/* For prog.c: 0 or a negated errno. The programs are not loaded yet. */
int prog_size_connections(struct prog *prog);

/* They are. */
int prog_open_connections(struct prog *prog);
int prog_reset_connections(struct prog *prog);
void prog_close_connections(struct prog *prog);

/* ---- Rules about connections ------------------------------------------------------------ */

/* Forget rules, their counts and their silences. */
int prog_reset_alerts(struct prog *prog);

/* Read the alerts that there are: prog.on_alert. */
void prog_read_alerts(struct prog *prog);

/* What rules have counted on all CPUs, by slot. */
struct alert_count prog_alert_count(const struct prog *prog, __u32 slot);

/* For prog.c: 0 or a negated errno. The programs are not loaded yet. */
int prog_size_alerts(struct prog *prog);

/* They are. */
int prog_open_alerts(struct prog *prog);
void prog_close_alerts(struct prog *prog);

#endif
