/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Control groups (cgroups): their root, where they are mounted, and the memory of this process. */
#ifndef NETOBS_ENGINE_CONTROL_GROUP_H
#define NETOBS_ENGINE_CONTROL_GROUP_H

#include <stdbool.h>
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

/* Finds the mount point of a hierarchy of control groups. */

enum { CGROUP_PATH_MAX = 4096 };

/* A hierarchy: that of version 2, or one of version 1. */
struct cgroup_kind {
	const char *fs_type;	/* "cgroup2", "cgroup" */
	const char *controller; /* controller of the hierarchy; NULL: version 2 */
};

struct cgroup_mount {
	char root[CGROUP_PATH_MAX]; /* the group that is seen there */
	char point[CGROUP_PATH_MAX];
};

/** @return whether @controllers, as in cgroups(7), /proc/PID/cgroup, are those of the hierarchy */
bool cgroup_kind_has(const struct cgroup_kind *kind, const char *controllers);

/**
 * Split a line of cgroups(7), /proc/PID/cgroup, ID:controllers:path, of version 2 without controllers.
 *
 * @param line  ends with its newline, or without; it is cut
 * @return false: it is none
 */
bool cgroup_parse_line(char *line, const char **ret_controllers, char **ret_path);

/**
 * Find the first mount of it in proc_pid_mountinfo(5).
 *
 * @param root  where /proc is, "" but in tests
 */
bool cgroup_mount_find(const char *root, const struct cgroup_kind *kind,
		       struct cgroup_mount *ret_mount);

#endif
