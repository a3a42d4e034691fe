/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct capability capabilities[CAPABILITIES] = {
	{ "CAP_BPF", "to load BPF programs", CAP_BPF, true },
	{ "CAP_PERFMON", "to let them read packets", CAP_PERFMON, true },
	{ "CAP_NET_ADMIN", "to attach them to interfaces", CAP_NET_ADMIN, false },
	{ "CAP_SYS_ADMIN", "for interfaces in other network namespaces only",
	  CAP_SYS_ADMIN, false },
	{ "CAP_SYS_RESOURCE", "where maps are charged to RLIMIT_MEMLOCK only",
	  CAP_SYS_RESOURCE, false },
	{ "CAP_SYS_PTRACE",
	  "for processes, NAT, drops and hooks of netfilter in namespaces without a name only",
	  CAP_SYS_PTRACE, false },
	{ "CAP_DAC_READ_SEARCH",
	  "for names of containers only, unless root reads them",
	  CAP_DAC_READ_SEARCH, false },
};

/* Inode of the initial user namespace: PROC_USER_INIT_INO of linux/proc_ns.h, USER_NS_INIT_INO of linux/nsfs.h. */
#define INITIAL_INODE 0xeffffffdU

/* glibc has no wrapper, and libcap would be for this call alone. */
int capability_read_held(uint64_t *ret_held)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*ret_held = (uint64_t)data[1].effective << 32 | data[0].effective;
	return 0;
}

bool capability_is_held(const struct capability *capability, uint64_t held)
{
	return held >> capability->number & 1 ||
	       (capability->is_implied && held >> CAP_SYS_ADMIN & 1);
}

bool capability_is_namespaced(void)
{
	struct stat ns;

	return !stat("/proc/self/ns/user", &ns) && ns.st_ino != INITIAL_INODE;
}
