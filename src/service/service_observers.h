/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The observers of sessions and of drops of a service, which a reload may start and end. One delivers
 * its records before it ends, and only then another one starts, so nothing is in two records.
 */
#ifndef NETOBS_SERVICE_SERVICE_OBSERVERS_H
#define NETOBS_SERVICE_SERVICE_OBSERVERS_H

#include <stdbool.h>

#include <netobs/session.h>

#include "service/metrics/metrics.h"
#include "service_config.h"

/* ---- Session queue --------------------------------------------------------------------- */

/*
 * Sessions that have ended during a drain, in their order, until it is known which conversations they are
 * part of.
 */

/* About five megabytes, which take memory as they are used and are freed once all are delivered. */
enum { SESSION_QUEUE_MAX = 4096 };

/* Zeroes: empty. */
struct session_queue {
	struct netobs_session *ring; /* SESSION_QUEUE_MAX; or NULL */
	uint32_t first, n;
};

/** @return false: there is no room, and nothing was added */
bool session_queue_add(struct session_queue *queue,
		       const struct netobs_session *session);

/** @return the first one, which stays the queue's; NULL: it is empty */
struct netobs_session *session_queue_first(const struct session_queue *queue);

/** Remove the first one; there is one. */
void session_queue_remove(struct session_queue *queue);

/** Free all. */
void session_queue_clear(struct session_queue *queue);

/* ---- Service observers ------------------------------------------------------------------ */

struct service_observer {
	struct netobs *netobs; /* NULL: nothing is observed */
	bool is_new;	 /* delivers nothing until a reload is in effect */
	bool is_leaving; /* delivers its last records, then is freed */
};

struct service_observers {
	struct service_observer sessions, drops;
	struct session_choice choice;
	struct session_totals session_totals;
	struct drop_totals drop_totals;
	/* Counts of earlier observers. */
	uint64_t sessions_ended, sessions_lost, drops_lost, drops_missed;
	/* Called for each session and drop; service_observers_takes() says whether it counts. */
	void (*on_record)(const struct netobs_record *record, void *user);
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

/**
 * Start the observers that @config wants and that there are not yet. Blocks while the kernel looks at all open files.
 *
 * @param ctx  which is started; where it has names of containers, they are found for both
 * @return 0; < 0: one cannot be started, which was logged
 */
int service_observers_prepare(struct service_observers *observers,
			      const struct service_config *config,
			      const struct netobs *ctx);

/** End the observers that service_observers_prepare() has started. */
void service_observers_abandon(struct service_observers *observers);

/*
 * Apply @config, whose strings must stay. May deliver records of observers that end.
 */
void service_observers_commit(struct service_observers *observers,
			      const struct service_config *config);

/** Count a session or a drop. @return whether the configuration selects it */
bool service_observers_takes(struct service_observers *observers,
			     const struct netobs_record *record);

/** @return the descriptor to poll for reading; -1: none */
int service_observer_fd(const struct service_observer *observer);

/**
 * Deliver records, for some milliseconds.
 *
 * @return 0; -ECANCELED: there is no observer, or not any more; < 0: one failed, which was logged
 */
int service_observers_dispatch(struct service_observers *observers);

/* Have the observers end; in a signal handler, too. */
void service_observers_stop(struct service_observers *observers);

/** @return whether one delivers its last records */
bool service_observers_are_leaving(const struct service_observers *observers);

/* Bring the totals up to date. */
void service_observers_refresh(struct service_observers *observers);

void service_observers_done(struct service_observers *observers);

#endif
