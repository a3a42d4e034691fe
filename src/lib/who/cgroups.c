// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cgroups.h"

#include "session_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	/* Groups added since the last removal; up to twice as many may be unused. */
	LOOK_AFTER = SESSION_CGROUPS_MAX / 4,
	REMOVE_AT_ONCE = 512, /* about a millisecond's work */
};

/* Join the names of a group and those above it. False: only a part of the path is known. */
static bool join_names(const struct session_cgroup *names, char *path, size_t size)
{
	size_t used = 0;

	if (names->is_cut || names->n > SESSION_CGROUP_LEVELS)
		return false;
	snprintf(path, size, "/");
	for (uint32_t i = names->n; i-- && used < size;)
		used += (size_t)snprintf(path + used, size - used, "/%.*s",
					 SESSION_CGROUP_NAME, names->names[i]);
	return used < size;
}

bool cgroups_find(int cgroups_fd, const struct session_cgroup_key *key,
		  struct cgroup_info *ret_info)
{
	struct session_cgroup names;
	struct cgroup_info info = { 0 };

	if (bpf_map_lookup_elem(cgroups_fd, key, &names) ||
	    !join_names(&names, info.path, sizeof(info.path)))
		return false;
	info.names = cgroup_names_of(info.path);
	*ret_info = info;
	return true;
}

static void end_marking(struct cgroups_upkeep *upkeep, int err,
			const struct log *log)
{
	if (err)
		log_warning(log, "cannot find the control groups of sockets: %s",
			    strerror(-err));
	err = err ?: bpf_map_get_next_key(upkeep->cgroups_fd, NULL, &upkeep->next);
	upkeep->phase = err ? CGROUPS_AT_REST : CGROUPS_REMOVING;
}

/* Groups without a socket keep the number of an earlier round. */
void cgroups_look_after(struct cgroups_upkeep *upkeep,
			struct session_programs *programs, uint64_t kept,
			const struct log *log)
{
	const uint32_t first = 0;
	int err;

	if (upkeep->phase != CGROUPS_AT_REST ||
	    kept - upkeep->kept_then < LOOK_AFTER)
		return;
	upkeep->kept_then = kept;
	upkeep->round.number++;
	err = bpf_map_update_elem(upkeep->round_fd, &first, &upkeep->round,
				  BPF_ANY);
	err = err ?: session_programs_begin_marks(programs);
	if (err)
		end_marking(upkeep, err, log);
	else
		upkeep->phase = CGROUPS_MARKING;
}

/* The next key is read before the removal, since it is found by the removed one. */
static void remove_some(struct cgroups_upkeep *upkeep)
{
	struct session_cgroup names;
	int err = 0;

	for (int i = 0; !err && i < REMOVE_AT_ONCE; i++) {
		const struct session_cgroup_key key = upkeep->next;

		err = bpf_map_get_next_key(upkeep->cgroups_fd, &key,
					   &upkeep->next);
		if (!bpf_map_lookup_elem(upkeep->cgroups_fd, &key, &names) &&
		    upkeep->round.number - names.round > 1)
			bpf_map_delete_elem(upkeep->cgroups_fd, &key);
	}
	if (err)
		upkeep->phase = CGROUPS_AT_REST;
}

bool cgroups_step(struct cgroups_upkeep *upkeep,
		  struct session_programs *programs, const struct log *log)
{
	int err;

	if (upkeep->phase == CGROUPS_MARKING) {
		err = session_programs_go_on_marking(programs);
		if (err == -EAGAIN)
			return false;
		end_marking(upkeep, err, log);
	} else if (upkeep->phase == CGROUPS_REMOVING) {
		remove_some(upkeep);
	}
	return upkeep->phase != CGROUPS_AT_REST;
}
