/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a thread did, and when: its last changes of state, within a limit of memory for all threads. */
#ifndef NETOBS_TRACE_THREAD_TIMES_H
#define NETOBS_TRACE_THREAD_TIMES_H

#include "bpf/sched.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	THREAD_TIMES_MAX = 1 << 16,  /* changes of a thread */
	THREAD_TIMES_ROOM = 1 << 22, /* of all threads: 32 MiB */
};

/* Zeroes: nothing is known. */
struct thread_times {
	uint64_t *changes; /* as in struct sched_thread, in a ring */
	uint32_t first, n, capacity;
};

/** Note a change, which comes after the last one, whatever the clock of its CPU says. @param room  changes of all threads that have memory */
void thread_times_add(struct thread_times *times, uint64_t *room, int64_t at_ns,
		      enum sched_thread_state state);

/**
 * Add up the states from @from_ns until @until_ns; the last state goes on.
 *
 * @return false: one of them is not known, and @ret_ns has no meaning
 */
bool thread_times_sum(const struct thread_times *times, int64_t from_ns,
		      int64_t until_ns, uint64_t ret_ns[NETOBS_THREAD_STATES]);

/** @return the time from which on the states are known; INT64_MAX: never */
int64_t thread_times_begin(const struct thread_times *times);

/** @return the last state, which goes on; SCHED_UNKNOWN: nothing is known */
enum sched_thread_state thread_times_state(const struct thread_times *times);

/** Forget what was before @before_ns. */
void thread_times_cut(struct thread_times *times, int64_t before_ns);

/** Forget all. */
void thread_times_clear(struct thread_times *times, uint64_t *room);

#endif
