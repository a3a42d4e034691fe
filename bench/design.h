/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is compared: netobs, and what it is measured by, each opened for a number of flows. */
#ifndef NETOBS_BENCH_DESIGN_H
#define NETOBS_BENCH_DESIGN_H

#include "engine.h"
#include "runner.h"

struct bpf_map;
struct designs_bpf;

/* In the order in which they are shown. */
enum {
	DESIGN_EMPTY,
	DESIGN_EMPTY2,
	DESIGN_PERCPU_HASH,
	DESIGN_NETOBS,
	DESIGN_NAT,
	DESIGNS
};

extern const char *const design_names[DESIGNS + 1];

/* Bytes that the table of a design takes for @flows, roughly. */
uint64_t design_memory(int design, uint32_t flows);

/* A design at work. */
struct subject {
	struct target target;

	/* Of designs.bpf.c. */
	struct designs_bpf *skel;
	const struct bpf_map *map; /* NULL: it has none */

	struct engine *engine; /* of netobs */
};

/* Returns 0 or -errno; then there is nothing to close. */
int subject_open(struct subject *subject, int design, uint32_t flows);

/* Give it its size, and run a packet of each flow. */
int subject_fill(struct subject *subject, struct runner *runner);

/* The packets that it has counted; NAN: it counts none. */
double subject_count(struct subject *subject);

void subject_close(struct subject *subject);

#endif
