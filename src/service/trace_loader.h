/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Makes and starts a tracer on a thread: to load its programs takes most of a second, in which the service goes
 * on. What the library logs meanwhile is kept until the tracer is taken, so that only one thread logs.
 */
#ifndef NETOBS_SERVICE_TRACE_LOADER_H
#define NETOBS_SERVICE_TRACE_LOADER_H

#include <netobs/trace.h>
#include <stdbool.h>

struct trace_loader;

/** @return 0, or -errno */
int trace_loader_new(struct trace_loader **ret_loader);

/** Wait for what is under way, and free all. NULL is fine. */
void trace_loader_free(struct trace_loader *loader);

/** Polls readable when there is something to be taken. */
int trace_loader_fd(const struct trace_loader *loader);

/** Begin; nothing is under way. @p opts: their on_log calls trace_loader_keep(). */
void trace_loader_begin(struct trace_loader *loader,
			const struct netobs_trace_opts *opts);

/** Whether something was begun that has not been taken. */
bool trace_loader_is_busy(const struct trace_loader *loader);

/**
 * Keep a message of the tracer that is started, on its thread.
 *
 * @return false: none is, and the message is the caller's
 */
bool trace_loader_keep(struct trace_loader *loader, int level,
		       const char *message);

/**
 * Take the tracer, and log what was kept, by the on_log of its options.
 *
 * @param ret_tracer  the caller's; NULL on failure
 * @return whether one has been started, or has failed to: *@ret_result is 0 or -errno then
 */
bool trace_loader_take(struct trace_loader *loader,
		       struct netobs_trace **ret_tracer, int *ret_result);

/** The same, but wait for it. @return false: nothing was begun */
bool trace_loader_finish(struct trace_loader *loader,
			 struct netobs_trace **ret_tracer, int *ret_result);

#endif
