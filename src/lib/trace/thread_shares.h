/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Who had the CPU while watched threads waited for it. */
#ifndef NETOBS_TRACE_THREAD_SHARES_H
#define NETOBS_TRACE_THREAD_SHARES_H

#include "bpf/sched.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

enum { THREAD_PROCESSES_KNOWN = 256 };

/* What /proc said of a process. */
struct thread_process {
	uint32_t pid;
	int64_t until_ns;
	char command[16];
	char container_id[sizeof(((struct netobs_queue_share *)0)->container_id)];
};

struct thread_share {
	struct sched_share_key key;
	struct sched_share share;
	int64_t at_ns; /* when it was read */
};

/* Zeroes: none. */
struct thread_shares {
	struct thread_share *items; /* by key.whose, the largest ones first */
	uint32_t n, capacity;
	struct thread_process known[THREAD_PROCESSES_KNOWN]; /* by the pid */
};

/**
 * Move what the programs have noted since the last call here. Members of a group that had no CPU time meanwhile
 * stay for a second: they may have used up its quota before.
 *
 * @param fd  the map sched_shares
 */
void thread_shares_read(struct thread_shares *shares, int fd, int64_t now_ns);

/** Set amount, rest and shares of a record. @whose: as in struct sched_share_key */
void thread_shares_fill(struct thread_shares *shares, uint32_t whose,
			int64_t now_ns, struct netobs_queue *queue);

/** @return what /proc says of a process now, or said in the last seconds */
const struct thread_process *thread_shares_process(struct thread_shares *shares,
						   uint32_t pid, int64_t now_ns);

void thread_shares_free(struct thread_shares *shares);

#endif
