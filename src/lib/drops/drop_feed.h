/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The drops of the host, for all of one thread that take them: the programs are loaded once, and what a
 * drain reads is passed to each taker. So each may ask for a drain at any time, and gets drops at the times
 * of the others, too.
 *
 * A drain reads one generation: the programs are switched to another generation of entries, and once
 * those that may still write to the old one have ended, it is read, in slices of some milliseconds.
 */
#ifndef NETOBS_DROPS_DROP_FEED_H
#define NETOBS_DROPS_DROP_FEED_H

#include "base/clock.h"
#include "bpf/drops.h"
#include "drop_names.h"
#include "drop_programs.h"
#include "engine/map.h"

#include <netobs/drop.h>

enum { DROP_FEED_WAIT_MS = 2 }; /* between looks whether programs have ended */

struct drop_taker {
	struct drop_taker *next;
	void (*take)(const struct netobs_drop *drop, void *ctx);
	void (*lose)(const struct count *lost,
		     void *ctx); /* dropped, but in no entry */
	void *ctx;
};

struct drop_batch;

/* A feed ends with its last taker. */
struct drop_feed {
	struct drop_programs programs;
	struct drop_names names;
	struct clock clock;
	struct drop_taker *takers;
	uint64_t begun, ended; /* drains */

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
 * @param taker  the first one; it stays where it is
 * @param no_reasons  as if the kernel stated none
 * @return 0; -errno, which is logged
 */
int drop_feed_open(struct drop_taker *taker, bool no_reasons,
		   const struct log *log, struct drop_feed **ret_feed);

/* A further taker, which stays where it is, gets all drops from now on. */
void drop_feed_join(struct drop_feed *feed, struct drop_taker *taker);

/* @feed may be NULL. Not from a taker's functions. */
void drop_feed_leave(struct drop_feed *feed, struct drop_taker *taker);

/* Count no drops any more, if no other taker wants them. */
void drop_feed_stop(struct drop_feed *feed);

/**
 * Ask for what has been dropped until now. It is read by drop_feed_step().
 *
 * @param ret_drain  number of the drain that brings it; set in any case
 * @return 0, or -errno: that drain brings nothing
 */
int drop_feed_ask(struct drop_feed *feed, uint64_t *ret_drain);

/**
 * Work on drains up to this one, for some milliseconds; call again after drop_feed_wait_ms().
 *
 * @return 1: it has not ended; 0: it has; < 0: it failed
 */
int drop_feed_step(struct drop_feed *feed, uint64_t drain);

static inline uint32_t drop_feed_wait_ms(const struct drop_feed *feed)
{
	return feed->state == FEED_GRACE ? DROP_FEED_WAIT_MS : 0;
}

/* An observer of drops that shares the programs of others. */

struct netobs;

/**
 * Have an observer take the drops of a feed, instead of loading programs of its own.
 *
 * @return 0; -EALREADY: it has been started, or has one; -EINVAL: it observes no drops
 */
int drops_join(struct netobs *drops, struct drop_feed *feed);

#endif
