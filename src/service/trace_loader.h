/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Makes and starts a tracer on a thread: loading its programs takes most of a second, in which the
 * service continues. Messages that the library logs meanwhile are kept until the tracer is taken,
 * so that only one thread logs.
 */
#ifndef NETOBS_SERVICE_TRACE_LOADER_H
#define NETOBS_SERVICE_TRACE_LOADER_H

#include <netobs/trace.h>
#include <stdbool.h>

struct trace_loader;

/** @return 0, or -errno */
int trace_loader_new(struct trace_loader **ret_loader);

/** The tracer that was taken has been freed. One that is being loaded is freed by its thread. NULL is fine. */
void trace_loader_free(struct trace_loader *loader);

/** Polls readable when there is something to be taken. */
int trace_loader_fd(const struct trace_loader *loader);

/**
 * Begin to make a tracer. None is being made, and the previous one has been freed.
 *
 * @param opts  their strings are NULL; their callbacks are called once the tracer is taken
 * @return 0; -ENOMEM
 */
int trace_loader_begin(struct trace_loader *loader,
		       const struct netobs_trace_opts *opts);

/** @return whether something was begun that has not been taken */
bool trace_loader_is_busy(const struct trace_loader *loader);

/**
 * Take the tracer, and log the kept messages, by the on_log of its options.
 *
 * @param ret_tracer  the caller's; NULL on failure
 * @return whether one has been started, or has failed to: *@ret_result is 0 or -errno then
 */
bool trace_loader_take(struct trace_loader *loader, struct netobs **ret_tracer,
		       int *ret_result);

#endif
