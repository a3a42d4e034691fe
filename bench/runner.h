/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Runs packets on one CPU: through a program by BPF_PROG_TEST_RUN, or over a wire. */
#ifndef NETOBS_BENCH_RUNNER_H
#define NETOBS_BENCH_RUNNER_H

#include "packets.h"
#include "wire.h"

struct runner {
	struct packets *packets;
	struct wire *wire; /* NULL: BPF_PROG_TEST_RUN */
	int cpu; /* the last one that this process may use: the first is busiest with interrupts */
	uint64_t run; /* packets so far */
};

/* A program, over the wire that which is attached, and what user space does meanwhile. */
struct target {
	int prog_fd;
	void (*attend)(void *user); /* or NULL */
	void (*tend)(void *user);   /* or NULL */
	void *user;
};

/* Returns 0 or -errno. */
int runner_init(struct runner *ret_runner, struct packets *packets,
		struct wire *wire);

/**
 * Run packets for about @ms in a thread, after some that are not measured, while this thread
 * calls attend().
 *
 * @param ret_ns  per packet
 * @return 0, -EINTR: stop_requested(), or another -errno
 */
int runner_measure(struct runner *runner, const struct target *target,
		   enum order order, uint32_t ms, double *ret_ns);

/* Run one packet of each flow; now and then call tend(). Returns as runner_measure() does. */
int runner_fill(struct runner *runner, const struct target *target);

#endif
