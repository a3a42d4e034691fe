/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "attach.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* enum bpf_attach_type and BPF_F_BEFORE of Linux 6.6's include/uapi/linux/bpf.h. */
enum { TCX_INGRESS = 46, TCX_EGRESS = 47, LINK_BEFORE = 1 << 3 };

static uint32_t hook_of(enum direction direction)
{
	return direction == EGRESS ? TCX_EGRESS : TCX_INGRESS;
}

int tcx_link(int program_fd, uint32_t ifindex, enum direction direction,
	     enum netobs_attach_order order)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = order == NETOBS_ATTACH_FIRST ? LINK_BEFORE : 0);

	return bpf_link_create(program_fd, ifindex,
			       (enum bpf_attach_type)hook_of(direction), &opts);
}

/* There is no interface 0. A kernel without tcx does not get as far as to look. */
int tcx_probe(int program_fd)
{
	cleanup_fd int fd = tcx_link(program_fd, 0, INGRESS, NETOBS_ATTACH_FIRST);

	return fd == -ENODEV ? 0 : fd < 0 ? fd : -EINVAL;
}

/* struct bpf_link_info of a tcx link, as Linux 6.6 has it. */
struct tcx_link_info {
	uint32_t type;
	uint32_t id;
	uint32_t prog_id;
	uint32_t padding;
	uint32_t ifindex;
	uint32_t attach_type;
};

uint32_t tcx_link_ifindex(int link_fd)
{
	struct tcx_link_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(link_fd, &info, &len) ? 0 : info.ifindex;
}

/* BPF_PROG_QUERY's part of union bpf_attr, as Linux 6.6 has it. */
struct tcx_query {
	uint32_t ifindex;
	uint32_t attach_type;
	uint32_t flags;
	uint32_t attach_flags;
	uint64_t program_ids;
	uint32_t count;
	uint32_t more[9];
};

int tcx_programs(uint32_t ifindex, enum direction direction,
		 uint32_t ret_ids[TCX_PROGRAMS_MAX])
{
	struct tcx_query query = {
		.ifindex = ifindex,
		.attach_type = hook_of(direction),
		.program_ids = (uintptr_t)ret_ids,
		.count = TCX_PROGRAMS_MAX,
	};

	if (syscall(__NR_bpf, BPF_PROG_QUERY, &query, sizeof(query)) < 0)
		return -errno;
	return query.count < TCX_PROGRAMS_MAX ? (int)query.count :
						TCX_PROGRAMS_MAX;
}
