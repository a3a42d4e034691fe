/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The control groups (cgroups) of this process: their root, and memory. */
#ifndef NETOBS_ENGINE_CONTROL_GROUP_H
#define NETOBS_ENGINE_CONTROL_GROUP_H

#include <stdint.h>

/* The root of the hierarchy of control groups (cgroup v2), where programs see all sockets. */

/** @return a descriptor of its directory, which the caller closes; or -errno */
int cgroup_root_open(void);

/*
 * The memory that control groups leave to this process. In a full group, the kernel kills processes
 * instead of refusing memory: so the room has to be known in advance.
 */

/*
 * @return bytes that may still be allocated: the least room of the group and its ancestors (version
 *         1 or 2), counting the page cache as free; UINT64_MAX: no limit. @root: prefix of /proc
 *         and of mounts, "" except in tests.
 */
uint64_t memory_room(const char *root);

/* The use of the room: half as much for entries as for the flows that they become. */
struct memory_plan {
	uint64_t entry_bytes;	/* 0: there is too little room */
	uint64_t process_bytes; /* for flows in user space */
};

struct memory_plan memory_plan(uint64_t room);

/* @return the least room for which memory_plan() finds a plan */
uint64_t memory_room_least(void);

#endif
