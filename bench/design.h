/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is compared: designs of a flow store, each opened for a number of flows. */
#ifndef NETOBS_BENCH_DESIGN_H
#define NETOBS_BENCH_DESIGN_H

#include "rules.h"
#include "runner.h"
#include "bpf/connection.h"
#include "catalogue/direction.h"

struct bpf_map;
struct designs_bpf;
struct subject;

/* How designs of a kind are measured; close() is also called after open() has failed. */
struct design_kind {
	int (*open)(struct subject *subject);
	/* Give it its size, without flows. NULL: it has it. */
	int (*adapt)(struct subject *subject);
	/* NULL: one packet of each flow. */
	int (*fill)(struct subject *subject);
	/* All packets that it has counted since it was opened. NULL: it counts none. */
	uint64_t (*count)(struct subject *subject);
	/* After measuring: whether it did what it is measured for. NULL: yes. */
	int (*check)(struct subject *subject);
	void (*close)(struct subject *subject); /* NULL: nothing to do */
};

struct design {
	const char *name;
	const struct design_kind *kind;
	/* Roughly. */
	uint32_t flow_bytes, flow_bytes_per_cpu;
	/* Of netobs: in what it differs from the program that netobsctl flows attaches. */
	bool has_no_logs, is_filtered, has_alerts, has_nat;
	enum rtt_mode rtt;
	enum rules_kind rules;
};

/* In the order in which they are shown. */
enum {
	DESIGN_EMPTY,
	DESIGN_EMPTY2,
	DESIGN_FLOOR,
	DESIGN_RINGBUF,
	DESIGN_HASH,
	DESIGN_HASH_SPINLOCK,
	DESIGN_PERCPU_HASH,
	DESIGN_OVERFLOW,
	DESIGN_NETOBS,
	DESIGN_FILTERED,
	DESIGN_RTT,
	DESIGN_RTT_LRU,
	DESIGN_NAT,
	DESIGN_NAT_HASH,
	DESIGN_ALERTS_NONE,
	DESIGN_ALERTS,
	DESIGN_ALERTS_HELD,
	DESIGN_ALERTS_STORM,
	DESIGNS
};

extern const struct design designs[DESIGNS];

/* Bytes that it takes for @flows on @n_cpus CPUs. */
uint64_t design_memory(const struct design *design, uint32_t flows,
		       uint32_t n_cpus);

/* A design at work. */
struct subject {
	const struct design *design;
	const struct design_kind *kind; /* of the design */
	const struct runner *runner;
	enum direction direction;
	int prog_fd;	  /* owned by what opened it */
	struct load load; /* burst, pause, attend and user are the design's */
	void *state;	  /* the kind's own */

	/* Of designs.bpf.c. */
	struct designs_bpf *skel;
	const struct bpf_map *map;
};

/* Open it for what the runner's spread is prepared for, and give it its size. */
int subject_open(struct subject *subject, const struct design *design,
		 const struct runner *runner, enum direction direction);

/* A packet of each flow. */
int subject_fill(struct subject *subject);
int subject_measure(struct subject *subject, const struct load *load,
		    double *ret_ns);
int subject_check(struct subject *subject);
void subject_close(struct subject *subject);

#endif
