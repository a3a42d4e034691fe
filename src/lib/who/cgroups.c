// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cgroups.h"

#include "base/util.h"
#include "engine/session_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Groups added since the last removal; up to twice as many may be unused. */
	LOOK_AFTER = SESSION_CGROUPS_MAX / 4,
	/* About a millisecond's work. */
	MARK_AT_ONCE = 8192,
	REMOVE_AT_ONCE = 512,
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

static void end_upkeep(struct cgroups_upkeep *upkeep, int err,
		       const struct log *log)
{
	close_fd(&upkeep->mark_fd);
	upkeep->phase = CGROUPS_AT_REST;
	if (err)
		log_warning(log, "cannot find the control groups of sockets: %s",
			    strerror(-err));
}

static int write_round(struct cgroups_upkeep *upkeep)
{
	const uint32_t first = 0;

	upkeep->round.left = MARK_AT_ONCE;
	return bpf_map_update_elem(upkeep->round_fd, &first, &upkeep->round,
				   BPF_ANY);
}

void cgroups_look_after(struct cgroups_upkeep *upkeep,
			const struct session_programs *programs, uint64_t kept,
			const struct log *log)
{
	int err;

	if (upkeep->phase != CGROUPS_AT_REST ||
	    kept - upkeep->kept_then < LOOK_AFTER)
		return;
	upkeep->kept_then = kept;
	upkeep->round.number++;
	err = write_round(upkeep);
	if (!err) {
		upkeep->mark_fd = session_programs_mark(programs);
		err = upkeep->mark_fd < 0 ? upkeep->mark_fd : 0;
	}
	if (err)
		end_upkeep(upkeep, err, log);
	else
		upkeep->phase = CGROUPS_MARKING;
}

void cgroups_done(struct cgroups_upkeep *upkeep)
{
	close_fd(&upkeep->mark_fd);
}

/* Groups without a socket keep the number of an earlier round. */
static void mark_some(struct cgroups_upkeep *upkeep, const struct log *log)
{
	char none;
	ssize_t n = read(upkeep->mark_fd, &none, sizeof(none));
	int err = n < 0 ? -errno : 0;

	if (!n) {
		close_fd(&upkeep->mark_fd);
		err = bpf_map_get_next_key(upkeep->cgroups_fd, NULL,
					   &upkeep->next);
		upkeep->phase = err ? CGROUPS_AT_REST : CGROUPS_REMOVING;
		return;
	}
	if (err == -EAGAIN || err == -EINTR)
		err = write_round(upkeep);
	if (err)
		end_upkeep(upkeep, err, log);
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

bool cgroups_step(struct cgroups_upkeep *upkeep, const struct log *log)
{
	if (upkeep->phase == CGROUPS_MARKING)
		mark_some(upkeep, log);
	else if (upkeep->phase == CGROUPS_REMOVING)
		remove_some(upkeep);
	return upkeep->phase != CGROUPS_AT_REST;
}
