/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The life that a context, a capture and an observer of sessions share: each is started once,
 * dispatched where its one descriptor is readable, stopped from any thread, and keeps its last
 * error in words.
 */
#ifndef NETOBS_BASE_LIFE_H
#define NETOBS_BASE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"
#include "loop.h"

enum life_state {
	LIFE_NEW,
	LIFE_FAILED, /* to start */
	LIFE_RUNNING,
	LIFE_STOPPING,
	LIFE_STOPPED,
};

struct life_ops {
	/** Start, and become LIFE_RUNNING. @return 0, or -errno */
	int (*start)(void *owner);
	/** Begin to stop; LIFE_STOPPING comes next. */
	void (*stop)(void *owner);
	/** After the loop, in each dispatch; once nothing is left, become LIFE_STOPPED. */
	int (*step)(void *owner);
	uint64_t privileges; /* privileges that start() needs, as a mask of capabilities */
};

struct life {
	const struct life_ops *ops;
	void *owner;
	struct log log;
	struct log_error error;
	enum life_state state;
	bool is_stopping; /* life_stop() was called; any thread */
	struct loop loop;
	int stop_fd;   /* readable since life_stop(), until it is dispatched */
	int delivered; /* in this life_dispatch() */
};

/** Call before all others; @write and @user are those of struct log. */
void life_init(struct life *life, const struct life_ops *ops, void *owner,
	       void (*write)(int level, const char *message, void *user),
	       void *user);

/** Open the loop. @return 0, or -errno */
int life_open(struct life *life);

void life_close(struct life *life);

/** @return 0 while it runs or stops; -ECANCELED: it has stopped; -EINVAL: it never ran */
int life_check(const struct life *life);

/** @return 0; -EALREADY; or an error of start(), which is kept */
int life_start(struct life *life);

/** @return the number delivered; < 0: of life_check(), or an error, which is kept */
int life_dispatch(struct life *life);

/** Ask it to stop; from any thread, and from handlers of signals. */
void life_stop(struct life *life);

#endif
