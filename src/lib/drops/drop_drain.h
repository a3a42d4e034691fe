/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Drops of one generation at a time: the programs are switched to another generation of entries, and once
 * those that may still write to the old one have ended, it is read, in slices of some milliseconds.
 */
#ifndef NETOBS_DROPS_DROP_DRAIN_H
#define NETOBS_DROPS_DROP_DRAIN_H

#include "bpf/drops.h"
#include "base/clock.h"
#include "engine/drop_programs.h"
#include "engine/map.h"
#include "drop_names.h"

#include <netobs/drop.h>

/* An entry of the programs' tables as a record. */

struct drop_source {
	const struct clock *clock;
	const struct drop_names *names;
	int functions_fd; /* the map "drop_functions" */
};

/** @param time_ns  of the record, since 1970 */
void drop_fill(const struct drop_source *source, const struct drop_key *key,
	       const struct drop_value *value, int64_t time_ns,
	       struct netobs_drop *ret_drop);

enum { DROP_DRAIN_WAIT_MS = 2 }; /* between looks whether programs have ended */

struct drop_batch;

/* Zeroes: off. Stays where it is while it is open. */
struct drop_drain {
	struct drop_programs programs;
	struct drop_names names;
	struct clock clock;
	struct drop_source source;
	void (*take)(const struct netobs_drop *drop,
		     void *ctx); /* a drop of the old generation */
	void *ctx;
	struct count lost; /* dropped, but in no entry: the tables were full */

	enum { DRAIN_NONE, DRAIN_GRACE, DRAIN_READ } state;
	uint32_t generation; /* that is being drained */
	int64_t drained_ns;  /* when it ended, since 1970 */
	int64_t ended_ns;    /* the same, CLOCK_BOOTTIME */
	struct map_grace *grace;
	int map_fd;	 /* that is being read */
	uint32_t cursor; /* of the kernel, in that map */
	bool has_cursor;
	struct drop_batch *batch;
};

/**
 * Load and attach the programs. `take` and `ctx` are set.
 *
 * @param no_reasons  as if the kernel stated none
 * @return 0; -errno, which is logged, and nothing stays loaded
 */
int drop_drain_open(struct drop_drain *drain, bool no_reasons,
		    const struct log *log);

/* A struct of zeroes stays as it is. */
void drop_drain_close(struct drop_drain *drain);

static inline bool drop_drain_is_idle(const struct drop_drain *drain)
{
	return drain->state == DRAIN_NONE;
}

/** Begin with the drops of the current generation; it is idle. @return 0, or -errno */
int drop_drain_begin(struct drop_drain *drain);

/**
 * Work on that, for some milliseconds. Where programs may not have ended yet, call again in
 * DROP_DRAIN_WAIT_MS; else at once.
 *
 * @return 0, also once it is idle; -errno
 */
int drop_drain_step(struct drop_drain *drain);

static inline uint32_t drop_drain_wait_ms(const struct drop_drain *drain)
{
	return drain->state == DRAIN_GRACE ? DROP_DRAIN_WAIT_MS : 0;
}

#endif
