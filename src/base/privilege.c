// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "privilege.h"

#include "util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static const struct {
	const char *name;
	int number;
	bool implied; /* by CAP_SYS_ADMIN */
} capabilities[] = {
	{ "CAP_BPF", CAP_BPF, true },
	{ "CAP_NET_ADMIN", CAP_NET_ADMIN, false },
	{ "CAP_PERFMON", CAP_PERFMON, true },
	{ "CAP_SYS_ADMIN", CAP_SYS_ADMIN, false },
	{ "CAP_SYS_RESOURCE", CAP_SYS_RESOURCE, false },
};

/* glibc has no wrapper, and libcap would be for this call alone. */
static uint64_t read_effective(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return UINT64_MAX; /* nothing is known to be missing */
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

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

uint64_t privilege_missing(int err, uint64_t wanted)
{
	const uint64_t held = read_effective();
	uint64_t missing = 0;

	if (err != -EPERM && err != -EACCES)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		const uint64_t bit = 1ULL << capabilities[i].number;
		bool is_held = held & bit || (capabilities[i].implied &&
					      held & 1ULL << CAP_SYS_ADMIN);

		if (wanted & bit && !is_held)
			missing |= bit;
	}
	if (!(missing & ~PRIVILEGE_NETNS) && wanted & PRIVILEGE_MAPS &&
	    is_memory_limited())
		missing = 1ULL << CAP_SYS_RESOURCE;
	return missing;
}

struct privilege_hint privilege_hint(int err, uint64_t wanted)
{
	uint64_t missing = privilege_missing(err, wanted);
	const char *separator = " (missing: ";
	struct privilege_hint hint = { "" };

	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
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
