/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the flow programs have counted: entries of L1, logs and overflow tables, and counters. */
#ifndef HARNESS_PROG_FLOWS_H
#define HARNESS_PROG_FLOWS_H

#include "prog.h"

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

#endif
