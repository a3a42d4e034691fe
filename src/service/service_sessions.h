/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The observer of sessions of a service, which a reload may start and end. It delivers its
 * sessions before it ends, and only then another one starts, so no session is in two records.
 */
#ifndef NETOBS_SERVICE_SERVICE_SESSIONS_H
#define NETOBS_SERVICE_SERVICE_SESSIONS_H

#include <stdbool.h>

#include <netobs/session.h>

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

/* ---- Service sessions ------------------------------------------------------------------ */

struct service_sessions {
	struct netobs *observer; /* NULL: no sessions are observed */
	bool is_new;	 /* delivers nothing until a reload is in effect */
	bool is_leaving; /* delivers its last sessions, then is freed */
	struct session_choice choice;
	struct session_totals past; /* without those that the observer counts */
	/* Called for each session that the configuration selects. */
	void (*on_session)(const struct netobs_session *session, void *user);
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

/**
 * Start the observer that @config wants, if there is none. It blocks while the kernel looks at all
 * open files.
 *
 * @param ctx  which is started; where it has names of containers, they are found for both
 * @return 0; < 0: it cannot be started, which was logged
 */
int service_sessions_prepare(struct service_sessions *sessions,
			     const struct service_config *config,
			     const struct netobs *ctx);

/** End the observer that service_sessions_prepare() has started. */
void service_sessions_abandon(struct service_sessions *sessions);

/*
 * Apply @config, whose strings must stay. May deliver sessions of an observer that ends.
 */
void service_sessions_commit(struct service_sessions *sessions,
			     const struct service_config *config);

/** @return the descriptor to poll for reading; -1: none */
int service_sessions_fd(const struct service_sessions *sessions);

/**
 * Deliver sessions, for some milliseconds.
 *
 * @return 0; -ECANCELED: there is no observer, or not any more; < 0: it failed, which was logged
 */
int service_sessions_dispatch(struct service_sessions *sessions);

/* Have the observer end; in a signal handler, too. */
void service_sessions_stop(struct service_sessions *sessions);

struct session_totals
service_sessions_totals(const struct service_sessions *sessions);

void service_sessions_done(struct service_sessions *sessions);

#endif
