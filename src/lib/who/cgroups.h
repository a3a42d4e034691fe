/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The names of control groups that the programs keep, in the map session_cgroups. */
#ifndef NETOBS_WHO_CGROUPS_H
#define NETOBS_WHO_CGROUPS_H

#include "base/log.h"
#include "bpf/session.h"
#include "container_facts.h"

#include <stdbool.h>

struct session_programs;

struct cgroup_info {
	char path[384];
	struct cgroup_names names;
};

/** @return whether the whole path is known; else @ret_info is not touched */
bool cgroups_find(int cgroups_fd, const struct session_cgroup_key *key,
		  struct cgroup_info *ret_info);

/* The removal of groups that no socket uses any more. */
struct cgroups_upkeep {
	int cgroups_fd, round_fd; /* the maps; owned by the caller */
	struct session_round round;
	uint64_t kept_then; /* session_counts.cgroups at the last removal */
	enum {
		CGROUPS_AT_REST,
		CGROUPS_MARKING, /* groups that sockets use are being marked */
		CGROUPS_REMOVING
	} phase;
	struct session_cgroup_key next; /* the next group to check */
};

/**
 * Begin to remove unused groups if many were added since the last removal. Only groups that were
 * unused then, too, are removed, so records of their last sockets still have the names.
 *
 * @param kept  session_counts.cgroups, the sum of all CPUs
 */
void cgroups_look_after(struct cgroups_upkeep *upkeep,
			struct session_programs *programs, uint64_t kept,
			const struct log *log);

/** Work on the removal for about a millisecond. @return false: it is done, or waits for a thread */
bool cgroups_step(struct cgroups_upkeep *upkeep,
		  struct session_programs *programs, const struct log *log);

#endif
