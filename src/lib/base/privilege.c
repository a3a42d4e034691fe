// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "privilege.h"

#include "util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/*
 * COMPAT(<5.11): whether maps are charged to RLIMIT_MEMLOCK, so that one of just more
 * than that is refused. libbpf lifts the limit where it may.
 */
static bool is_memory_limited(void)
{
	const uint64_t enough = 64 << 20; /* more than flows start with */
	struct rlimit limit;
	cleanup_fd int fd = -1;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur > enough)
		return false;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4096,
			    limit.rlim_cur / 4096 + 1, NULL);
	return fd == -EPERM;
}

/* @ret_is_namespaced: this thread has all of them, but in a user namespace */
static uint64_t find_missing(int err, uint64_t wanted, bool *ret_is_namespaced)
{
	uint64_t held, missing = 0;

	*ret_is_namespaced = false;
	if ((err != -EPERM && err != -EACCES) || capability_read_held(&held))
		return 0;
	for (size_t i = 0; i < CAPABILITIES; i++)
		if (!capability_is_held(&capabilities[i], held))
			missing |= wanted & 1ULL << capabilities[i].number;
	if (!missing && capability_is_namespaced()) {
		*ret_is_namespaced = true;
		return wanted;
	}
	if (!(missing & ~PRIVILEGE_NETNS) && wanted & PRIVILEGE_MAPS &&
	    is_memory_limited())
		missing = 1ULL << CAP_SYS_RESOURCE;
	return missing;
}

uint64_t privilege_missing(int err, uint64_t wanted)
{
	bool is_namespaced;

	return find_missing(err, wanted, &is_namespaced);
}

struct privilege_hint privilege_hint(int err, uint64_t wanted)
{
	bool is_namespaced;
	uint64_t missing = find_missing(err, wanted, &is_namespaced);
	const char *separator =
		is_namespaced ? " (missing in the initial user namespace: " :
				" (missing: ";
	struct privilege_hint hint = { "" };

	for (size_t i = 0; i < CAPABILITIES; i++) {
		size_t used = strlen(hint.text);

		if (!(missing >> capabilities[i].number & 1))
			continue;
		snprintf(hint.text + used, sizeof(hint.text) - used, "%s%s",
			 separator, capabilities[i].name);
		separator = ", ";
	}
	if (missing)
		strcat(hint.text, ")");
	return hint;
}

int privilege_keep_error(const struct log *log, uint64_t wanted, int err)
{
	if (!privilege_missing(err, wanted))
		return log_keep_error(log, "cannot start", err);
	if (!log->error->is_new)
		log_error(log, "cannot start: %s%s", strerror(-err),
			  privilege_hint(err, wanted).text);
	return -EPERM;
}
