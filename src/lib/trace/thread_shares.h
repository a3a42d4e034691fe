/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Who had the CPU while watched threads waited for it. */
#ifndef NETOBS_TRACE_THREAD_SHARES_H
#define NETOBS_TRACE_THREAD_SHARES_H

#include "base/slots.h"
#include "bpf/sched.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

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
