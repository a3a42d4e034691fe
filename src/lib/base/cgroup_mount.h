/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Finds the mount point of a hierarchy of control groups. */
#ifndef NETOBS_BASE_CGROUP_MOUNT_H
#define NETOBS_BASE_CGROUP_MOUNT_H

#include <stdbool.h>

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
 * Find the first mount of it in proc_pid_mountinfo(5).
 *
 * @param root  where /proc is, "" but in tests
 */
bool cgroup_mount_find(const char *root, const struct cgroup_kind *kind,
		       struct cgroup_mount *ret_mount);

#endif
