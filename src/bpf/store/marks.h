/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Marks of an entry that several CPUs add to at the same time. COMPAT(<5.12):
 * additions are the only atomic operations, so each mark is a counter of three
 * bits: a CPU that finds it at zero adds one. It would take eight CPUs that find
 * the same mark missing at the same moment to carry over.
 */
#ifndef NETOBS_BPF_STORE_MARKS_H
#define NETOBS_BPF_STORE_MARKS_H

#include "bpf/types.h"

/* The lowest bit of each of the 21 counters. */
#define MARK_ONES 0x1249249249249249ULL

/* One counter each, at one, for the marks that are set. */
static __always_inline __u64 marks_spread(__u32 marks)
{
	__u64 counts = marks;

	counts = (counts | counts << 32) & 0x001f00000000ffffULL;
	counts = (counts | counts << 16) & 0x001f0000ff0000ffULL;
	counts = (counts | counts << 8) & 0x100f00f00f00f00fULL;
	counts = (counts | counts << 4) & 0x10c30c30c30c30c3ULL;
	return (counts | counts << 2) & MARK_ONES;
}

/* One counter each, at one, for those that are not at zero. */
static __always_inline __u64 marks_present(__u64 counts)
{
	return (counts | counts >> 1 | counts >> 2) & MARK_ONES;
}

static __always_inline __u32 marks_gather(__u64 counts)
{
	counts = marks_present(counts);
	counts = (counts | counts >> 2) & 0x10c30c30c30c30c3ULL;
	counts = (counts | counts >> 4) & 0x100f00f00f00f00fULL;
	counts = (counts | counts >> 8) & 0x001f0000ff0000ffULL;
	counts = (counts | counts >> 16) & 0x001f00000000ffffULL;
	return counts | counts >> 32;
}

#endif
