/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Iterators over maps, which some kernels refuse, whatever they do. */
#ifndef VERIFIER_ITERATORS_H
#define VERIFIER_ITERATORS_H

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ITERATORS = 3 };

static const char *const iterators[ITERATORS] = {
	"bpf_map_elem",
	"bpf_sk_storage_map",
	"sockmap",
};

static bool has_iterator[ITERATORS];

static inline bool load_empty(const struct btf *btf, const char *iterator)
{
	const struct bpf_insn insns[2] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = BPF_TRACE_ITER);
	char name[32];
	int id, fd;

	snprintf(name, sizeof(name), "bpf_iter_%s", iterator);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	if (id < 0)
		return false;
	opts.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "empty", "GPL", insns, 2,
			   &opts);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Before the others. */
static inline void probe_iterators(void)
{
	struct btf *btf = btf__load_vmlinux_btf();

	for (size_t i = 0; btf && i < ITERATORS; i++)
		has_iterator[i] = load_empty(btf, iterators[i]);
	btf__free(btf);
}

/* @return whether the kernel may take the program */
static inline bool is_to_be_had(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	for (size_t i = 0; i < ITERATORS; i++)
		if (!strncmp(section, "iter/", strlen("iter/")) &&
		    !strcmp(section + strlen("iter/"), iterators[i]))
			return has_iterator[i];
	return true;
}

#endif
