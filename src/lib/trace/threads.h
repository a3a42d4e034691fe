/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What threads of traced connections do: they run, wait for a CPU, sleep, or are stopped; and who has
 * the CPU while they wait. Times are of CLOCK_BOOTTIME, numbers of threads as the initial namespace counts.
 */
#ifndef NETOBS_TRACE_THREADS_H
#define NETOBS_TRACE_THREADS_H

#include "base/log.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

struct threads;

/** Called for each record NETOBS_QUEUE_CPU, whose times are of CLOCK_BOOTTIME. */
typedef void threads_fn(struct netobs_queue *queue, void *ctx);

/**
 * Load the programs; nothing is attached.
 *
 * @param on_queue  or NULL
 * @return 0; -errno, which is logged
 */
int threads_open(struct threads **ret_threads, threads_fn *on_queue, void *ctx,
		 const struct log *log);

/**
 * Watch a thread from now on, until a minute after the last call for a thread of its process, or the last time that
 * threads_time() has been asked about. The other threads of the process are watched, too, unless there are many.
 */
void threads_watch(struct threads *threads, uint32_t pid, uint32_t tid,
		   int64_t now_ns);

/**
 * Add up what a thread did in that time.
 *
 * @return false: it is not known for all of it, or that is not over
 */
bool threads_time(struct threads *threads, uint32_t tid, int64_t from_ns,
		  int64_t until_ns, uint64_t ret_ns[NETOBS_THREAD_STATES]);

/** Read what the programs report, and make records: to be called every 10 ms. */
void threads_sweep(struct threads *threads, int64_t now_ns);

/** @return whether programs are attached */
bool threads_are_attached(const struct threads *threads);

/** @threads: or NULL */
void threads_close(struct threads *threads);

#endif
