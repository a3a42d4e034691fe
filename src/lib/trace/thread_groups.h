/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Control groups of watched threads, and how the kernel limits their CPU time. */
#ifndef NETOBS_TRACE_THREAD_GROUPS_H
#define NETOBS_TRACE_THREAD_GROUPS_H

#include "base/slots.h"
#include "bpf/sched.h"
#include "engine/control_group.h"

#include <stdbool.h>
#include <stdint.h>

enum { THREAD_GROUPS = 4 }; /* of a thread, from its own one upwards */

/* Counters of cpu.stat; the first one is 0 as long as the group has no quota. */
struct thread_quota {
	uint64_t periods, throttled, throttled_ns;
};

struct thread_group {
	uint64_t id; /* the inode of its directory: the kernel's number of the group */
	uint32_t number;
	bool is_known; /* to the programs */
	int fd;	       /* of cpu.stat */
	int64_t used_ns;
	struct thread_quota quota, before; /* at the last two reads */
	char path[128];			   /* the end of it */
};

struct thread_groups {
	struct cgroup_mount mount; /* of the hierarchy with the controller `cpu` */
	const struct cgroup_kind *kind; /* NULL: there is none */
	struct sched_control *control;
	int fd; /* the map sched_groups */
	uint32_t last_number;
	struct slots groups;
};

/** @control and @fd stay the caller's. */
void thread_groups_open(struct thread_groups *groups,
			struct sched_control *control, int fd);

/** Find the groups of a thread that may have a quota. @ret_ids: 0: none */
void thread_groups_find(struct thread_groups *groups, uint32_t tid,
			int64_t now_ns, uint64_t ret_ids[THREAD_GROUPS]);

/** @return the group among @ids that was throttled for the longest time between the last two reads; NULL: none was */
const struct thread_group *
thread_groups_throttled(const struct thread_groups *groups,
			const uint64_t ids[THREAD_GROUPS]);

/** Mark groups as those of a watched thread. */
void thread_groups_use(struct thread_groups *groups,
		       const uint64_t ids[THREAD_GROUPS], int64_t now_ns);

/** Read the counters, and forget groups that were not in use since @before_ns. */
void thread_groups_read(struct thread_groups *groups, int64_t before_ns);

void thread_groups_close(struct thread_groups *groups);

#endif
