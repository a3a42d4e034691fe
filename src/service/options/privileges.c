/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "privileges.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/privilege.h"

static bool has_netns(const struct args_list *interfaces)
{
	for (size_t i = 0; interfaces && i < interfaces->n; i++)
		if (!strncmp(interfaces->items[i], "netns:", strlen("netns:")))
			return true;
	return false;
}

/* A unit may have the capability for reading only, which names of containers need. */
static int capability_for_files(void)
{
	uint64_t held = 0;

	capability_read_held(&held);
	return !(held >> CAP_DAC_OVERRIDE & 1) && held >> CAP_DAC_READ_SEARCH & 1 ?
		       CAP_DAC_READ_SEARCH :
		       CAP_DAC_OVERRIDE;
}

static uint64_t kept_capabilities(const struct args_list *interfaces,
				  unsigned int keep)
{
	uint64_t kept = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON |
			1ULL << CAP_NET_ADMIN;

	if (keep & (KEEP_PROGRAMS | KEEP_PROCESSES) || has_netns(interfaces))
		kept |= 1ULL << CAP_SYS_ADMIN;
	if (keep & KEEP_PROCESSES)
		kept |= 1ULL << CAP_SYS_PTRACE;
	if (keep & KEEP_FILES)
		kept |= 1ULL << capability_for_files();
	return kept;
}

void privileges_drop(const struct args_list *interfaces, unsigned int keep)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	const struct rlimit lowest = { 1, 1 };
	const uint64_t kept = kept_capabilities(interfaces, keep);

	/* COMPAT(<5.11): maps are charged to it, and later ones may be needed. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	/* Threads that wait for the kernel run ahead of others, without CAP_SYS_NICE. */
	setrlimit(RLIMIT_RTPRIO, &lowest);
	for (int number = 0; number <= CAP_LAST_CAP; number++)
		if (!(kept >> number & 1))
			prctl(PR_CAPBSET_DROP, number);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capget, &header, data) < 0)
		return;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= kept >> 32 * i;
		data[i].effective &= kept >> 32 * i;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
}
