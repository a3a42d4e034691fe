/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The run of a verb that observes something until a signal, a key, the end of its time or its
 * observer stops it.
 */
#ifndef NETOBS_CLI_VIEW_VERB_RUN_H
#define NETOBS_CLI_VIEW_VERB_RUN_H

#include "live.h"
#include "view_output.h"

enum { VERB_FDS = 4 };

/* Each gets the object of the verb, which begins with a struct verb. */
struct verb_ops {
	/** @return 0; 1: it has ended already; < 0: it cannot start, which was reported */
	int (*start)(void *object);
	/** Run before each wait. May be NULL. @return milliseconds to wait at most; -1: no limit */
	int (*prepare)(void *object);
	/**
	 * Run after each wait. NULL: the observer's netobs_dispatch().
	 *
	 * @return >= 0 or -EINTR; -ECANCELED: it has ended; < 0: it failed
	 */
	int (*dispatch)(void *object);
	/*
	 * End the observers, after which dispatch() returns -ECANCELED. Safe in a signal handler, more
	 * than once, and before and during start(). NULL: the observer's netobs_stop().
	 */
	void (*stop)(void *object);
	/**
	 * Close and report, also after start() has failed. May be NULL.
	 *
	 * @param r  result of start(), or of the loop: 0: it ran to its end
	 * @return @r; < 0: the verb has failed, which was reported
	 */
	int (*finish)(void *object, int r);
};

struct verb {
	const struct verb_ops *ops;
	const char *name;
	uint32_t verbose;     /* how often -v was given */
	uint32_t duration_ms; /* 0: no limit */
	struct netobs *observer; /* made by start(), waited for, and freed at the end; or NULL */
	struct output_list *outputs; /* opened by start(); NULL: none */
	int fds[VERB_FDS]; /* to wait for beside it, outputs and keys; -1: none */
	size_t n_fds;
	struct live live;
	bool watches_stdout; /* although no output of @outputs writes to it */

	int64_t deadline_ms; /* the end of @duration_ms; 0: none */
	bool is_reader_gone; /* of standard output, if that is watched */
	bool error_logged;   /* by verb_log() */
	int write_error;     /* of verb_flush(); < 0 */
	int status;	     /* exit status, unless it is EXIT_FINE */
	volatile bool is_stopping;
};

/** Call start(), prepare() and dispatch() until it ends, and finish(). @return an exit status */
int verb_run(struct verb *verb);

/* May be called more than once, and from a signal handler. */
void verb_stop(void *verb);

/** Report that it cannot do @doing, such as "start". @return @error */
int verb_fail(const struct verb *verb, const char *doing, int error);

/* For on_log of options: @verb is the object. */
void verb_log(int level, const char *message, void *verb);

/** Flush standard output, and stop if that fails. @return 0; < 0: the error, reported unless it is -EPIPE */
int verb_flush(struct verb *verb);

#endif
