/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The observer of drops of a service, which a reload may start and end. It delivers its drops before it
 * ends, and only then another one starts, so none is in two records.
 */
#ifndef NETOBS_SERVICE_SERVICE_DROPS_H
#define NETOBS_SERVICE_SERVICE_DROPS_H

#include "service/metrics/metrics.h"
#include "service_config.h"

struct service_drops {
	struct netobs *observer; /* NULL: no drops are observed */
	bool is_new; /* nothing is read from it until a reload is in effect */
	bool is_leaving; /* delivers its last drops, then is freed */
	struct drop_totals totals;
	uint64_t lost_before, missed_before; /* by earlier observers */
	void (*on_drop)(const struct netobs_drop *drop, void *user);
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

/**
 * Start the observer that @config wants, if there is none.
 *
 * @param ctx  which is started; where its flows have drops, these are read for both
 * @return 0; < 0: it cannot, which was logged
 */
int service_drops_prepare(struct service_drops *drops,
			  const struct service_config *config,
			  const struct netobs *ctx);

/** End the observer that service_drops_prepare() has started. */
void service_drops_abandon(struct service_drops *drops);

/* Apply @config. */
void service_drops_commit(struct service_drops *drops,
			  const struct service_config *config);

/** @return the descriptor to poll for reading; -1: none */
int service_drops_fd(const struct service_drops *drops);

/**
 * Deliver drops, for some milliseconds.
 *
 * @return 0; -ECANCELED: there is no observer, or not any more; < 0: it failed, which was logged
 */
int service_drops_dispatch(struct service_drops *drops);

/* Have the observer end; in a signal handler, too. */
void service_drops_stop(struct service_drops *drops);

/* Read drops that the observer could not report. */
void service_drops_refresh(struct service_drops *drops);

void service_drops_done(struct service_drops *drops);

#endif
