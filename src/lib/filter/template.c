// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "template.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_jump(const struct bpf_insn *insn)
{
	const uint8_t class = BPF_CLASS(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) &&
	       BPF_OP(insn->code) != BPF_CALL;
}

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/*
 * @return whether it is neither wide, nor a jump, nor a call of a function of the object, which
 * libbpf relocates. The programs begin with no access that CO-RE relocates.
 */
static bool is_plain(const struct bpf_insn *insn)
{
	const bool calls = insn->code == (BPF_JMP | BPF_CALL);

	return calls ? !insn->src_reg : !is_jump(insn) && !is_wide(insn);
}

/* @return where two plain instructions follow each other, before any jump; @n: nowhere */
static size_t find_place(const struct bpf_insn *insns, size_t n)
{
	for (size_t i = 0; i + 1 < n && !is_jump(&insns[i]); i++) {
		if (is_wide(&insns[i]))
			i++;
		else if (is_plain(&insns[i]) && is_plain(&insns[i + 1]))
			return i;
	}
	return n;
}

/* @return the last exit of a program that a jump at @from reaches; 0: there is none */
static size_t find_exit(const struct bpf_insn *insns, size_t n, size_t from)
{
	size_t found = 0;

	for (size_t i = from + 1; i < n && i - from - 1 <= INT16_MAX; i++)
		if (insns[i].code == (BPF_JMP | BPF_EXIT))
			found = i;
	return found;
}

/*
 * The verifier knows that the jump is taken. It insists on a way to each instruction, though not
 * on one that is ever taken.
 */
static int end_at(struct filter_template *template, struct bpf_program *program,
		  size_t place, size_t exit)
{
	size_t n = bpf_program__insn_cnt(program),
	       size = n * sizeof(struct bpf_insn);
	struct bpf_insn *insns = malloc(size);
	int err;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), size);
	memcpy(template->replaced, &insns[place], sizeof(template->replaced));
	insns[place] = code_alu64_imm(BPF_MOV, BPF_REG_0, 0);
	insns[place + 1] = code_jump64_imm(BPF_JEQ, BPF_REG_0, 0);
	insns[place + 1].off = (int16_t)(exit - place - TEMPLATE_END);
	err = bpf_program__set_insns(program, insns, n);
	free(insns);
	template->end = place;
	template->ends_early = !err;
	return err;
}

int filter_template_init(struct filter_template *template,
			 const struct bpf_object *object)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(object, template->name);
	const struct bpf_insn *insns;
	size_t n, place, exit;

	if (!program)
		return -ENOENT;
	template->program = program;
	insns = bpf_program__insns(program);
	n = bpf_program__insn_cnt(program);
	place = find_place(insns, n);
	exit = find_exit(insns, n, place + 1);
	return exit ? end_at(template, program, place, exit) : 0;
}

void filter_template_restore(const struct filter_template *template,
			     struct bpf_insn *insns)
{
	if (template->ends_early)
		memcpy(&insns[template->end], template->replaced,
		       sizeof(template->replaced));
}
