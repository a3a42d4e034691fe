// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_programs.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* Constants of Linux 6.4's include/uapi/linux/bpf.h. */
	PROG_TYPE_NETFILTER = 32,
	ATTACH_TYPE_NETFILTER = 45,
	/* Priorities on each side of a hook for programs before or behind all others, one per tracer. */
	PRIORITIES = 256,
};

/* BPF_LINK_CREATE's part of union bpf_attr, as Linux 6.4 has it. */
struct netfilter_link {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint32_t family;
	uint32_t hook;
	int32_t priority;
	uint32_t netfilter_flags;
};

void netfilter_set_type(struct bpf_program *program)
{
	bpf_program__set_type(program, (enum bpf_prog_type)PROG_TYPE_NETFILTER);
	bpf_program__set_expected_attach_type(
		program, (enum bpf_attach_type)ATTACH_TYPE_NETFILTER);
}

static int attach_at(int program_fd, uint32_t family, uint32_t hook,
		     int32_t priority)
{
	const struct netfilter_link attr = {
		.prog_fd = (uint32_t)program_fd,
		.attach_type = ATTACH_TYPE_NETFILTER,
		.family = family,
		.hook = hook,
		.priority = priority,
	};
	int fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/* The kernel keeps the last priority of each side for itself. */
int netfilter_attach_outside(int program_fd, uint32_t family, uint32_t hook,
			     bool is_behind)
{
	int link = -EBUSY;

	for (int i = 1; link == -EBUSY && i <= PRIORITIES; i++)
		link = attach_at(program_fd, family, hook,
				 is_behind ? INT_MAX - i : INT_MIN + i);
	return link;
}

static int load_accepting(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = NF_ACCEPT },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type =
			    (enum bpf_attach_type)ATTACH_TYPE_NETFILTER);

	return bpf_prog_load((enum bpf_prog_type)PROG_TYPE_NETFILTER,
			     "netobs_probe", "Dual BSD/GPL", insns,
			     ARRAY_SIZE(insns), &opts);
}

int netfilter_probe(void)
{
	cleanup_fd int program = load_accepting(), link = -1;

	if (program < 0)
		return program;
	link = netfilter_attach_outside(program, NFPROTO_IPV4, NF_INET_FORWARD,
					true);
	return link < 0 ? link : 0;
}
