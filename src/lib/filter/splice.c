// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "splice.h"

#include "base/util.h"
#include "functions.h"

#include <bpf/libbpf.h>
#include <errno.h>

/* Instructions of a program. */
struct range {
	size_t start; /* 0: there are none */
	size_t end;
};

/* @return the function that is called first in @caller */
static struct range find_called(const struct bpf_insn *insns, size_t n,
				struct range caller)
{
	struct range found = { .end = n };

	for (size_t i = caller.start; !found.start && i < caller.end; i++)
		found.start = functions_called(insns, i);
	for (size_t i = 0; i < n; i++) {
		size_t function = functions_called(insns, i);

		if (function > found.start && function < found.end)
			found.end = function;
	}
	return found;
}

/*
 * libbpf puts functions behind the program, as they are called: judge() first. Gone are its
 * stub and, unless it is needed, what the stub calls.
 */
struct parts {
	struct range judge, find_carried;
	struct range gone[2];
	size_t n; /* what is left */
};

static struct parts find_parts(const struct bpf_insn *insns, size_t n,
			       bool has_inner)
{
	struct parts parts = {
		.judge = find_called(insns, n, (struct range){ 0, n }),
	};

	if (parts.judge.start)
		parts.find_carried = find_called(insns, n, parts.judge);
	parts.gone[0] = parts.judge;
	if (!has_inner && parts.find_carried.start)
		parts.gone[1] = parts.find_carried;
	parts.n = n - (parts.gone[0].end - parts.gone[0].start) -
		  (parts.gone[1].end - parts.gone[1].start);
	return parts;
}

static bool is_gone(const struct parts *parts, size_t i)
{
	return (i >= parts->gone[0].start && i < parts->gone[0].end) ||
	       (i >= parts->gone[1].start && i < parts->gone[1].end);
}

/* Where an instruction is once parts are gone and judge() is at the end. */
static size_t find_moved(const struct parts *parts, size_t i)
{
	size_t to = i;

	if (i == parts->judge.start)
		return parts->n;
	for (size_t k = 0; k < ARRAY_SIZE(parts->gone); k++)
		if (i > parts->gone[k].start)
			to -= min_u64(i, parts->gone[k].end) -
			      parts->gone[k].start;
	return to;
}

int splice_program(struct code *code, const struct bpf_program *program,
		   bool has_inner, uint32_t *ret_find_carried)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	size_t n = bpf_program__insn_cnt(program);
	struct parts parts = find_parts(insns, n, has_inner);

	if (!parts.judge.start || (has_inner && !parts.find_carried.start))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		size_t function = functions_called(insns, i);
		struct bpf_insn insn = insns[i];

		if (function)
			insn.imm = (int)(find_moved(&parts, function) -
					 find_moved(&parts, i) - 1);
		if (!is_gone(&parts, i))
			code_add(code, insn);
	}
	*ret_find_carried = find_moved(&parts, parts.find_carried.start);
	return 0;
}
