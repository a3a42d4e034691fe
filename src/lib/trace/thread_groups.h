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

struct thread_group {
	uint64_t id; /* the inode of its directory: the kernel's number of the group */
	uint32_t number;
	bool is_known;	  /* to the programs */
	int fd;		  /* of cpu.stat, whose counters are the next two */
	uint64_t periods; /* 0: it has no quota */
	uint64_t throttled;
	int64_t used_ns;
	char path[128]; /* the end of it */
};

/* A group of a thread. */
struct thread_member {
	uint64_t id; /* 0: none */
	uint64_t throttled; /* the group's counter when thread_groups_throttled() was called last */
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

/** Find the groups of a thread that may have a quota. @members: those that it was in before */
void thread_groups_find(struct thread_groups *groups, uint32_t tid,
			int64_t now_ns,
			struct thread_member members[THREAD_GROUPS]);

/** Mark groups as those of a watched thread. */
void thread_groups_use(struct thread_groups *groups,
		       const struct thread_member members[THREAD_GROUPS],
		       int64_t now_ns);

/** Read the counters, and forget groups that were not in use since @before_ns. */
void thread_groups_read(struct thread_groups *groups, int64_t before_ns);

/** @return the group of @members that was throttled most often since the last call; NULL: none was */
const struct thread_group *
thread_groups_throttled(const struct thread_groups *groups,
			struct thread_member members[THREAD_GROUPS],
			uint64_t *ret_times);

void thread_groups_close(struct thread_groups *groups);

#endif
