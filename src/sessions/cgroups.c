// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cgroups.h"

#include "engine/session_programs.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

/* Groups that were added since; two times as many may be there without a socket. */
enum { LOOK_AFTER = SESSION_CGROUPS_MAX / 4 };

/* Its names, its own first. False: the path is longer than what is known of it. */
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

/* The next key is that of the element behind it, so it is read before its removal. */
static void remove_old(const struct cgroups_upkeep *upkeep)
{
	struct session_cgroup_key key, next;
	struct session_cgroup names;
	int err = bpf_map_get_next_key(upkeep->cgroups_fd, NULL, &next);

	while (!err) {
		key = next;
		err = bpf_map_get_next_key(upkeep->cgroups_fd, &key, &next);
		if (!bpf_map_lookup_elem(upkeep->cgroups_fd, &key, &names) &&
		    upkeep->round - names.round > 1)
			bpf_map_delete_elem(upkeep->cgroups_fd, &key);
	}
}

void cgroups_look_after(struct cgroups_upkeep *upkeep,
			const struct session_programs *programs, uint64_t kept,
			const struct log *log)
{
	const uint32_t first = 0;
	int err;

	if (kept - upkeep->kept_then < LOOK_AFTER)
		return;
	upkeep->kept_then = kept;
	upkeep->round++;
	err = bpf_map_update_elem(upkeep->round_fd, &first, &upkeep->round,
				  BPF_ANY);
	err = err ?: session_programs_mark(programs);
	if (err)
		log_warning(log, "cannot find the control groups of sockets: %s",
			    strerror(-err));
	else
		remove_old(upkeep);
}
