/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Marks of an entry that several CPUs add to at the same time. COMPAT(<5.12):
 * additions are the only atomic operations, so each mark is a counter of four
 * bits: one is added by whoever finds it at zero. It would take sixteen CPUs
 * that find the same mark missing at the same moment to carry over.
 */
#ifndef NETOBS_BPF_MARKS_H
#define NETOBS_BPF_MARKS_H

#include "types.h"

/* The lowest bit of each of the 16 counters. */
#define MARK_ONES 0x1111111111111111ULL

/* One counter each, at one, for the marks that are set. */
static __always_inline __u64 marks_spread(__u16 marks)
{
	__u64 counts = marks;

	counts = (counts | counts << 24) & 0x000000ff000000ffULL;
	counts = (counts | counts << 12) & 0x000f000f000f000fULL;
	counts = (counts | counts << 6) & 0x0303030303030303ULL;
	return (counts | counts << 3) & MARK_ONES;
}

/* One counter each, at one, for those that are not at zero. */
static __always_inline __u64 marks_present(__u64 counts)
{
	counts |= counts >> 1;
	counts |= counts >> 2;
	return counts & MARK_ONES;
}

static __always_inline __u16 marks_gather(__u64 counts)
{
	counts = marks_present(counts);
	counts = (counts | counts >> 3) & 0x0303030303030303ULL;
	counts = (counts | counts >> 6) & 0x000f000f000f000fULL;
	counts = (counts | counts >> 12) & 0x000000ff000000ffULL;
	return counts | counts >> 24;
}

#endif
