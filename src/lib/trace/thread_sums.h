/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What threads did, and who ran meanwhile. */
#ifndef NETOBS_TRACE_THREAD_SUMS_H
#define NETOBS_TRACE_THREAD_SUMS_H

#include "base/slots.h"
#include "bpf/sched.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

/* What a thread did, and when: its last changes of state, within a limit of memory for all threads. */

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

/* Who had the CPU while watched threads waited for it. */

enum {
	THREAD_SHARES_READS = 4, /* a second: see thread_shares_read() */
};

struct thread_share {
	struct sched_share_key key;
	struct sched_share share;
	int64_t at_ns;				 /* when some of it was read */
	uint64_t recent_ns[THREAD_SHARES_READS]; /* of a group: by the read */
};

/* Zeroes: none. */
struct thread_shares {
	struct slots items;
	uint32_t reads;
};

/**
 * Take over what the programs have noted since the last call, 250 ms before.
 *
 * @param fd  the map sched_shares
 */
void thread_shares_read(struct thread_shares *shares, int fd, int64_t now_ns);

/**
 * Set amount, rest and shares of a record. The shares of a thread are forgotten then. Those of a group are
 * of the last second: it may have used up its quota before the thread waits.
 *
 * @param whose  as in struct sched_share_key
 * @return how long a thread waited for the quota of its group, and which that is
 */
struct sched_share thread_shares_fill(struct thread_shares *shares,
				      uint32_t whose, struct netobs_queue *queue);

void thread_shares_free(struct thread_shares *shares);

#endif
