/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is compared: netobs, and what it is measured by, each opened for a number of flows. */
#ifndef NETOBS_BENCH_DESIGN_H
#define NETOBS_BENCH_DESIGN_H

#include "api/features.h"
#include "host/host.h"
#include "runner.h"

#include <netobs/sink.h>

/* The real thing: the library's programs and its drain, without an interface. */

struct engine {
	struct netobs_opts opts;
	struct log log;
	struct host host; /* of one interface */
	struct pipeline pipeline;
	struct features features;
	struct programs programs;
	struct netobs_stats stats;   /* as of the last drain */
	uint64_t flows;		     /* reported so far */
	uint64_t packets;	     /* in them */
	struct netobs_sink *sink;    /* the user's, for the records; or NULL */
	void (*on_step)(void *user); /* during a drain; or NULL */
	void *user;
};

/* As netobsctl flows does by default but for @flags of netobs_opts, with room for @flows. */
int engine_open(struct engine *engine, uint32_t flows, uint64_t flags);
void engine_close(struct engine *engine);

/* Its program, for outgoing packets, and what user space does while they run through it. */
struct target engine_target(struct engine *engine);

/* A drain from beginning to end. */
void engine_drain(struct engine *engine);

/*
 * Fill the store with all flows and drain it, until its tables have the size
 * for them. The store is empty then.
 */
int engine_adapt(struct engine *engine, struct runner *runner,
		 const struct target *target);

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
