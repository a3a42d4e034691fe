/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The drops of the host, for all of one thread that take them: the programs are loaded once, and what a
 * drain reads is passed to each taker. So each may ask for a drain at any time, and gets drops at the times
 * of the others, too.
 */
#ifndef NETOBS_DROPS_DROP_FEED_H
#define NETOBS_DROPS_DROP_FEED_H

#include "drop_drain.h"

struct drop_taker {
	struct drop_taker *next;
	void (*take)(const struct netobs_drop *drop, void *ctx);
	void (*lose)(const struct count *lost,
		     void *ctx); /* dropped, but in no entry */
	void *ctx;
};

/* It ends with its last taker. */
struct drop_feed {
	struct drop_drain drain;
	struct drop_taker *takers;
	uint64_t begun, ended; /* drains */
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
 * Work on drains up to this one, for some milliseconds; call again after drop_drain_wait_ms().
 *
 * @return 1: it has not ended; 0: it has; < 0: it failed
 */
int drop_feed_step(struct drop_feed *feed, uint64_t drain);

/* An observer of drops that shares the programs of others. */

struct netobs_drops;

/**
 * Have an observer take the drops of a feed, instead of loading programs of its own.
 *
 * @return 0; -EALREADY: it has been started, or has one
 */
int drops_join(struct netobs_drops *drops, struct drop_feed *feed);

#endif
