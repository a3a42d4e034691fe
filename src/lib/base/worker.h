/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Short-lived threads, for calls that may have to wait: the caller's event loop does not. They
 * block all signals, which are for the caller's threads.
 */
#ifndef NETOBS_BASE_WORKER_H
#define NETOBS_BASE_WORKER_H

#include <stdbool.h>

/*
 * Run a detached thread.
 *
 * @param urgent  ahead of threads of the usual kind, if that is allowed
 * @return 0, or -errno
 */
int detached_run(void *(*run)(void *arg), void *arg, bool urgent);

/*
 * Does one piece of work after the other, each in a thread; its descriptor becomes readable
 * when one is done. A piece of work owns all the data that it uses.
 */
struct worker;

/* @run does a piece of work, @free_work frees it; NULL: the caller takes all back. */
int worker_new(void (*run)(void *work), void (*free_work)(void *work),
	       struct worker **ret_worker);

/* Work that is under way is finished by its thread. NULL is fine. */
void worker_free(struct worker *worker);

/* Polls readable when there is something to be taken. */
int worker_fd(const struct worker *worker);

/* Takes @work over, unless it fails, as pthread_create(3); not while it is busy. */
int worker_start(struct worker *worker, void *work);

/* Start @work as worker_start(); if no thread can be created, the caller runs it. */
void worker_start_or_run(struct worker *worker, void *work);

/* @work needs no thread: it is done already, and can be taken. */
void worker_put_done(struct worker *worker, void *work);

/* @return whether it has work that runs, or is done but not taken yet */
bool worker_is_busy(const struct worker *worker);

/* @return whether this process is a child of fork(2) that lacks the thread: its work never ends */
bool worker_is_lost(const struct worker *worker);

/* Wait until no work is under way, for @timeout_ms at most; -1: for as long as it takes. */
void worker_wait(const struct worker *worker, int timeout_ms);

/* The work that is done, the caller's again; NULL: none is. */
void *worker_take(struct worker *worker);

#endif
