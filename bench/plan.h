/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The cases that the options of a datapath benchmark ask for. */
#ifndef NETOBS_BENCH_PLAN_H
#define NETOBS_BENCH_PLAN_H

#include "config.h"
#include "results.h"

struct plan {
	const struct config *config;
	struct results results;
	struct spread spread;
	struct runner runner; /* through BPF_PROG_TEST_RUN */
	struct progress progress;
};

/**
 * Make packets and a runner, and add a cell for each case and design. Tables too large
 * for a host that has other things to do are left out, with a message.
 *
 * @param ret_plan  plan_close(), also after an error
 * @return 0; -ENOENT, if there is no case here, or other -errno: reported
 */
int plan_open(struct plan *ret_plan, const struct config *config);
void plan_close(struct plan *plan);

/* Make the packets of a cell, unless they are those of the cell before. Returns 0 or -ENOMEM. */
int plan_prepare(struct plan *plan, const struct cell *cell);

/* How long a subject is measured at a time, and after how many packets that ends at the latest. */
struct slot {
	uint32_t ms;
	uint32_t burst; /* 0: any number */
};

/* The sample of @cell in @round. Returns 0 or -errno; -EINTR: stop_requested(). */
int plan_measure(struct plan *plan, struct subject *subject, struct cell *cell,
		 uint32_t round, const struct slot *slot);

/* Report the error, if it is one, that @cell cannot be measured. Returns it. */
int plan_report_error(const struct plan *plan, const struct cell *cell, int err);

#endif
