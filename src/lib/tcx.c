/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "tcx.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* enum bpf_attach_type and BPF_F_BEFORE of Linux 6.6's include/uapi/linux/bpf.h. */
enum { TCX_INGRESS = 46, TCX_EGRESS = 47, LINK_BEFORE = 1 << 3 };

int tcx_link(int program_fd, uint32_t ifindex, enum netobs_direction direction,
	     enum netobs_attach_order order)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = order == NETOBS_ATTACH_FIRST ? LINK_BEFORE : 0);
	int hook = direction == NETOBS_EGRESS ? TCX_EGRESS : TCX_INGRESS;

	return bpf_link_create(program_fd, ifindex, (enum bpf_attach_type)hook,
			       &opts);
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
