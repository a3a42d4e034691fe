/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Callbacks of the turns of a tracer, and their limits. */
#ifndef NETOBS_TRACE_TURN_OPS_H
#define NETOBS_TRACE_TURN_OPS_H

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TURNS_HELD_MAX = 16384,
	/* Records of a connection at once; then 5 in 4 seconds, and one of n turns beyond that: 1 kB a second as JSON. */
	TURNS_BURST = 256,
};

struct turns_ops {
	/* Its alert and its container are still empty. */
	void (*on_turn)(struct netobs_turn *turn, void *ctx);
	/* NULL, or false: what a thread did in that time is not known. Times are since 1970. */
	bool (*thread_time)(void *ctx, uint32_t tid, int64_t from_ns,
			    int64_t until_ns,
			    uint64_t ret_ns[NETOBS_THREAD_STATES]);
	/*
	 * Whether one of these points is seen, of bits 1 << enum netobs_trace_point; NULL: all are. COMPAT(<6.3): no
	 * call that writes is seen, so what is sent first was written then; nor when bytes can be read, so those in
	 * order can be as TCP gets them.
	 */
	bool (*sees)(void *ctx, uint32_t points);
	void *ctx;
};

#endif
