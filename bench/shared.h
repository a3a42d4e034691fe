/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What spread.bpf.c and user space share. */
#ifndef NETOBS_BENCH_SHARED_H
#define NETOBS_BENCH_SHARED_H

#include "bpf/types.h"

/* Array elements are multiples of 8 bytes: these leave no gaps. */
enum { LINE_NUMBERS = CACHE_LINE / 4 };

struct number_line {
	__u32 numbers[LINE_NUMBERS];
};

/* One per CPU: which numbers of the sequence become this CPU's flows. */
struct cursor_state {
	__u32 first; /* number `first + (position & mask)` is the next one */
	__u32 mask;
	__u32 position;
	__u32 share; /* 0: as it is; else the flow is base + number % share */
	__u32 base;
	__u32 is_talk; /* packets are those of conversations: talk.h */
	__u32 reserved[10];
};

_Static_assert(sizeof(struct cursor_state) == CACHE_LINE, "no false sharing");

#endif
