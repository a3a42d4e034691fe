/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Makes and starts a capture while its readers are served: threads compile a filter, and load and
 * attach programs, which may take seconds. Messages that the library logs meanwhile are kept until
 * the result is taken, so that only one thread logs.
 */
#ifndef NETOBS_CLI_CAPTURE_CAPTURE_START_H
#define NETOBS_CLI_CAPTURE_CAPTURE_START_H

#include <netobs/capture.h>
#include <stdbool.h>

struct capture_start;

/* @on_log: as in the options of captures, for the messages that are kept. @return 0, or -errno */
int capture_start_new(void (*on_log)(int level, const char *message, void *user),
		      void *user, struct capture_start **ret_start);

/* Cancel a step that is under way, and free all. NULL is fine. */
void capture_start_free(struct capture_start *start);

/* Polls readable when capture_start_take() has something. */
int capture_start_fd(const struct capture_start *start);

/* Begin netobs_capture_new(). @opts: callbacks but on_log are not called meanwhile. */
void capture_start_make(struct capture_start *start,
			const struct netobs_capture_opts *opts);

/* Begin netobs_start(). @capture belongs to this module until it is taken. */
void capture_start_run(struct capture_start *start, struct netobs *capture);

/**
 * Keep a message of the capture that is made or started, on whatever thread.
 *
 * @return false: nothing is under way, and the message is the caller's
 */
bool capture_start_keep_log(struct capture_start *start, int level,
			    const char *message);

/* @return whether something was begun that has not been taken */
bool capture_start_is_busy(const struct capture_start *start);

/*
 * Take the result of a step that has ended.
 *
 * @param ret_capture  the caller's; NULL on failure
 * @return whether there was something; *@ret_result is 0 or -errno then
 */
bool capture_start_take(struct capture_start *start,
			struct netobs **ret_capture, int *ret_result);

/*
 * End the step that is under way, and take its result. Waits for a filter to be compiled or for
 * programs to be loaded, but no longer for interfaces. @return false: nothing was begun
 */
bool capture_start_finish(struct capture_start *start,
			  struct netobs **ret_capture, int *ret_result);

#endif
