/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The names of control groups that the programs keep, in session_cgroups. */
#ifndef NETOBS_WHO_CGROUPS_H
#define NETOBS_WHO_CGROUPS_H

#include "base/log.h"
#include "bpf/session.h"
#include "cgroup_path.h"

#include <stdbool.h>

struct session_programs;

struct cgroup_info {
	char path[384];
	struct cgroup_names names;
};

/** @return whether all of its path is known; else @ret_info is not touched */
bool cgroups_find(int cgroups_fd, const struct session_cgroup_key *key,
		  struct cgroup_info *ret_info);

/* Groups that no socket has any more, and when they were last removed. */
struct cgroups_upkeep {
	int cgroups_fd, round_fd; /* the maps; the caller's */
	struct session_round round;
	uint64_t kept_then; /* session_counts.cgroups */
	enum {
		CGROUPS_AT_REST,
		CGROUPS_MARKING, /* those that sockets have */
		CGROUPS_REMOVING
	} phase;
	int mark_fd;			/* -1: none */
	struct session_cgroup_key next; /* to be looked at */
};

/**
 * Begin to remove them if many were added since. The sockets of what will be removed were gone the
 * last time, too, so a record of them that is still to be made has their names.
 *
 * @param kept  session_counts.cgroups, the sum of all CPUs
 */
void cgroups_look_after(struct cgroups_upkeep *upkeep,
			const struct session_programs *programs, uint64_t kept,
			const struct log *log);

/** Work on that for about a millisecond. @return false: it is done */
bool cgroups_step(struct cgroups_upkeep *upkeep, const struct log *log);

void cgroups_done(struct cgroups_upkeep *upkeep);

#endif
