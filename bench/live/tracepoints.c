/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * tracepoints: an empty program wherever netobsctl trace has one, which is what the kernel takes for
 * calling them. Says "ready" when they are attached, and ends with a signal.
 */
#include "base/util.h"
#include "bpf/parse/tunnel.h"
#include "bpf/store/hash.h"
#include "engine/nat.h"
#include "trace.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECTION "tp_btf/"

/* Before Linux 5.17, in place of two others. */
#define WITHOUT_REASONS "netobs_tr_drop"

static const struct bpf_insn empty[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* It stays attached as long as this process. @return 0, also if the kernel lacks the tracepoint */
static int attach_empty(const char *tracepoint)
{
	const int id = libbpf_find_vmlinux_btf_id(tracepoint, BPF_TRACE_RAW_TP);
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = BPF_TRACE_RAW_TP,
		    .attach_btf_id = (__u32)id);
	int fd;

	if (id < 0)
		return 0;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "netobs_empty", "GPL", empty,
			   ARRAY_SIZE(empty), &opts);
	if (fd < 0)
		return fd;
	return bpf_raw_tracepoint_open(NULL, fd) < 0 ? -errno : 0;
}

static int attach_all(const struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object) {
		const char *section = bpf_program__section_name(program);
		int err;

		if (strncmp(section, SECTION, strlen(SECTION)) ||
		    !strcmp(bpf_program__name(program), WITHOUT_REASONS))
			continue;
		err = attach_empty(section + strlen(SECTION));
		if (err) {
			fprintf(stderr, "tracepoints: %s: %s\n", section,
				strerror(-err));
			return err;
		}
	}
	return 0;
}

int main(void)
{
	struct trace_bpf *skel = trace_bpf__open();

	if (!skel) {
		perror("tracepoints");
		return 1;
	}
	if (attach_all(skel->obj))
		return 1;
	trace_bpf__destroy(skel);
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
