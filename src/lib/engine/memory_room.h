/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the memory control groups of this process leave to it. Where a group is
 * full the kernel kills, and does not refuse: so that has to be known before.
 */
#ifndef NETOBS_ENGINE_MEMORY_ROOM_H
#define NETOBS_ENGINE_MEMORY_ROOM_H

#include <stdint.h>

/*
 * Bytes that may still be taken: the least of what the group and its ancestors
 * leave (version 1 or 2), beside caches of files; UINT64_MAX: none has a limit.
 * @root: where /proc and the mounts are, "" but in tests.
 */
uint64_t memory_room(const char *root);

/* How to use @room: half as much for entries as for the flows that they become. */
struct memory_plan {
	uint64_t entry_bytes;	/* 0: there is too little room */
	uint64_t process_bytes; /* of the flows */
};

struct memory_plan memory_plan(uint64_t room);

/* The least @room that there can be a plan for. */
uint64_t memory_room_least(void);

#endif
