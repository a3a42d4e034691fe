/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The beginning of each kind of struct netobs: it is started once, dispatched where its one
 * descriptor is readable, stopped from any thread, and keeps its last error in words. Implements
 * the functions of netobs.h that all kinds share.
 */
#ifndef NETOBS_BASE_LIFE_H
#define NETOBS_BASE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/netobs.h>

#include "log.h"
#include "loop.h"

struct sink_source;

enum life_state {
	LIFE_NEW,
	LIFE_FAILED, /* to start */
	LIFE_RUNNING,
	LIFE_STOPPING,
	LIFE_STOPPED,
};

/* Each gets the object, whose first member is its struct life. */
struct life_ops {
	/** Start, and become LIFE_RUNNING. @return 0, or -errno */
	int (*start)(void *object);
	/** Begin to stop; LIFE_STOPPING comes next. */
	void (*stop)(void *object);
	/** Called before the loop, in each dispatch; or NULL. */
	void (*begin)(void *object);
	/** Called after the loop, in each dispatch; once nothing is left, become LIFE_STOPPED. */
	int (*step)(void *object);
	/** Free the members; life and object are the caller's. */
	void (*free)(void *object);
	uint64_t privileges; /* privileges that start() needs, as a mask of capabilities */
};

struct life {
	const struct life_ops *ops; /* these tell the kinds apart */
	struct sink_source *source; /* of a context, for its sinks; else NULL */
	struct log log;
	struct log_error error;
	enum life_state state;
	bool is_stopping; /* netobs_stop() was called; any thread */
	struct loop loop;
	int stop_fd; /* readable since netobs_stop(), until it is dispatched */
	int delivered; /* in this netobs_dispatch() */
};

/** @return @netobs as the object of @ops; NULL: it is NULL, or of another kind */
static inline void *life_as(const struct netobs *netobs,
			    const struct life_ops *ops)
{
	struct life *life = (struct life *)netobs;

	return life && life->ops == ops ? life : NULL;
}

/** Call before all others; @write and @user are those of struct log. */
void life_init(struct life *life, const struct life_ops *ops,
	       void (*write)(int level, const char *message, void *user),
	       void *user);

/** Open the loop. @return 0, or -errno */
int life_open(struct life *life);

/**
 * End the making of an object: hand it to the caller, or free it.
 *
 * @param what   is made, for the message of an error
 * @param err    of making it
 * @param error  gets the message; or NULL
 * @return @err
 */
int life_made(struct life *life, const char *what, int err,
	      char (*error)[NETOBS_ERROR_MAX], struct netobs **ret_netobs);

/** @return 0 while it runs or stops; -ECANCELED: it has stopped; -EINVAL: it never ran */
int life_check(const struct life *life);

#endif
