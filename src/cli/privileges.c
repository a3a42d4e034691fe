/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name, *purpose;
	int number;
	bool implied; /* by CAP_SYS_ADMIN */
} wanted[PRIVILEGES] = {
	{ "CAP_BPF", "to load BPF programs", CAP_BPF, true },
	{ "CAP_PERFMON", "to let them read packets", CAP_PERFMON, true },
	{ "CAP_NET_ADMIN", "to attach them to interfaces", CAP_NET_ADMIN, false },
	{ "CAP_SYS_ADMIN", "for interfaces in other network namespaces only",
	  CAP_SYS_ADMIN, false },
	{ "CAP_SYS_RESOURCE", "where maps are charged to RLIMIT_MEMLOCK only",
	  CAP_SYS_RESOURCE, false },
};

int privileges_read(struct privilege ret_privileges[PRIVILEGES])
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint64_t held;

	/* glibc has no wrapper, and libcap would be for this call alone. */
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	held = (uint64_t)data[1].effective << 32 | data[0].effective;

	for (int i = 0; i < PRIVILEGES; i++) {
		ret_privileges[i] = (struct privilege){
			.name = wanted[i].name,
			.purpose = wanted[i].purpose,
			.number = wanted[i].number,
			.held = held >> wanted[i].number & 1 ||
				(wanted[i].implied && held >> CAP_SYS_ADMIN & 1),
		};
	}
	return 0;
}
