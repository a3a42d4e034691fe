/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bypassing L1. Where packets of more flows come than L1 has entries, looking a flow up reads cache
 * lines that are far away, often to find that the flow is not there, which costs more than a record
 * in the log and its way to the flow table. So each CPU counts, per tick of the kernel, how many of
 * its packets miss. While that is too many, it looks into L1 in one tick of sixteen only, and
 * appends the packets of the others to the log at once.
 *
 * Counts stay exact: user space adds up what L1 and the log have of a flow. Only the clock of the
 * host has ticks: packets of a file always look.
 *
 * Pure: the same header builds for the host, where it is tested.
 */
#ifndef NETOBS_BPF_STORE_BYPASS_H
#define NETOBS_BPF_STORE_BYPASS_H

#include "bpf/once.h"
#include "bpf/types.h"

enum {
	BYPASS_TICKS = 15,
	BYPASS_MISSES = 256, /* fewer in a tick cost next to nothing */
	BYPASS_EIGHTHS = 3,  /* of a tick's packets that miss */
	BYPASS_LOG_FOURTHS = 3, /* if more of the log is in use, the reader is late */
};

static __always_inline bool bypass_has_room(const struct cpu_state *cpu,
					    __u32 log_slots)
{
	__u64 used = cpu->log_head - READ_ONCE(cpu->log_tail);

	return used < log_slots / 4 * BYPASS_LOG_FOURTHS;
}

/* A tick of this CPU has ended. */
static __always_inline void bypass_tick(struct cpu_state *cpu, __u32 log_slots)
{
	__u32 entered = (__u32)cpu->entered;
	__u32 packets = entered - cpu->l1_entered, misses = cpu->l1_misses;

	if (!bypass_has_room(cpu, log_slots))
		cpu->l1_bypass = 0;
	else if (cpu->l1_bypass)
		cpu->l1_bypass--;
	else if (misses >= BYPASS_MISSES && misses > packets / 8 * BYPASS_EIGHTHS)
		cpu->l1_bypass = BYPASS_TICKS;
	cpu->l1_misses = 0;
	cpu->l1_entered = entered;
}

#endif
