/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Runs packets on one CPU or on all at once, a pinned thread on each: through a program
 * by BPF_PROG_TEST_RUN, or over a wire.
 */
#ifndef NETOBS_BENCH_RUNNER_H
#define NETOBS_BENCH_RUNNER_H

#include "wire.h"

#include "bpf/types.h"

#include <sched.h>

struct filter;

enum sharing {
	SHARING_DISJOINT, /* each CPU has flows of its own */
	SHARING_SAME,	  /* all CPUs have the same flows */
};

struct runner {
	struct spread *spread;
	const struct filter *filter; /* of DESIGN_FILTERED */
	const struct wire *wire;     /* NULL: BPF_PROG_TEST_RUN */
	enum clock_kind clock;	     /* of netobs */
	uint32_t n_cpus;	     /* that this process may use */
	int cpus[CPU_SETSIZE];
};

struct load {
	enum order order;
	enum sharing sharing;
	uint32_t n_cpus; /* the last ones: the first is busiest with interrupts */
	uint32_t budget_ms;
	/* At most this many packets in a row, then @pause; 0: any number. */
	uint32_t burst;
	void (*pause)(void *user);
	/* Called all the time by the thread that waits for the others; or NULL. */
	void (*attend)(void *user);
	void *user;
};

int runner_init(struct runner *runner, struct spread *spread);

/*
 * Run packets for about @budget_ms, after some that are not measured. The mean
 * of all CPUs' ns per packet goes to @ret_ns. -EINTR: stop_requested().
 */
int runner_measure(const struct runner *runner, const struct load *load,
		   double *ret_ns);

/* Run one packet of each flow, on one CPU. */
int runner_fill(const struct runner *runner, const struct load *load);

#endif
