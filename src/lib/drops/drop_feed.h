/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads the drops of the host. A drain reads one generation: the programs are switched to another
 * generation of entries, and once those that may still write to the old one have ended, it is read, in
 * slices of some milliseconds.
 */
#ifndef NETOBS_DROPS_DROP_FEED_H
#define NETOBS_DROPS_DROP_FEED_H

#include "base/clock.h"
#include "bpf/drops.h"
#include "bpf/nat.h"
#include "drop_names.h"
#include "engine/program_set.h"
#include "engine/map.h"

#include <netobs/drop.h>
#include <stdbool.h>

/* ---- Programs ---------------------------------------------------------------------------- */

/* The programs that see dropped packets, in the variant whose arguments this kernel has. */

/* All zeroes: off. Must not be moved while it is open. */
struct drop_programs {
	struct program_set set;
	struct attach_point points[2];
	bool has_reasons;
	bool has_nat; /* the entries of conntrack can be read */
	struct nat_layout nat;
	struct drop_state *state;	     /* mapped */
	int drops_fd, rest_fd, functions_fd; /* descriptors of the set's maps */
};

/**
 * Load the programs and attach them.
 *
 * @param log  used during this call only; NULL: log nothing
 * @return 0; -errno, which is logged, and nothing stays loaded
 */
int drop_programs_open(struct drop_programs *programs, bool no_reasons,
		       const struct log *log);

/* Detach; the maps stay. A program may still run on another CPU. */
void drop_programs_detach(struct drop_programs *programs);

void drop_programs_close(struct drop_programs *programs);

/** @return drops that no program counted, because both were interrupted */
uint64_t drop_programs_missed(const struct drop_programs *programs);

/* ---- Feed -------------------------------------------------------------------------------- */

enum { DROP_FEED_WAIT_MS = 2 }; /* between looks whether programs have ended */

struct drop_batch;

/* Zeroes: closed. Stays where it is while it is open. */
struct drop_feed {
	void (*take)(const struct netobs_drop *drop, void *ctx);
	void (*lose)(const struct count *lost,
		     void *ctx); /* dropped, but in no entry */
	void *ctx;
	struct drop_programs programs;
	struct drop_names names;
	struct clock clock;

	enum { FEED_IDLE, FEED_GRACE, FEED_READ } state;
	uint32_t generation; /* that is being drained */
	int64_t drained_ns;  /* when it ended, since 1970 */
	int64_t ended_ns;    /* when it ended, CLOCK_BOOTTIME */
	struct map_grace *grace;
	int map_fd;	 /* that is being read */
	uint32_t cursor; /* of the kernel, in that map */
	bool has_cursor;
	struct drop_batch *batch;
};

/**
 * Load and attach the programs.
 *
 * @param feed  zeroes, but for take, lose and ctx
 * @param no_reasons  as if the kernel stated none
 * @return 0; -errno, which is logged, and the feed is closed
 */
int drop_feed_open(struct drop_feed *feed, bool no_reasons,
		   const struct log *log);

void drop_feed_close(struct drop_feed *feed);

/**
 * Begin to drain the drops counted until now; drop_feed_step() reads them. The previous drain has ended.
 *
 * @return 0, or -errno: the next drain but one reads it
 */
int drop_feed_begin(struct drop_feed *feed);

/**
 * Work on the drain for some milliseconds; call again after drop_feed_wait_ms().
 *
 * @return 1: it has not ended; 0: it has; < 0: it failed
 */
int drop_feed_step(struct drop_feed *feed);

static inline uint32_t drop_feed_wait_ms(const struct drop_feed *feed)
{
	return feed->state == FEED_GRACE ? DROP_FEED_WAIT_MS : 0;
}

#endif
