// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "functions.h"

#include "base/util.h"
#include "bpf/apart.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

size_t functions_called(const struct bpf_insn *insns, size_t i)
{
	bool calls = insns[i].code == (BPF_JMP | BPF_CALL) &&
		     insns[i].src_reg == BPF_PSEUDO_CALL;

	return calls ? i + 1 + insns[i].imm : 0;
}

/* ---- Types ---------------------------------------------------------------------- */

enum {
	TYPE_NUMBER = 1, /* what btf__add_int() returns first, and so on */
	TYPE_PROTO,	 /* with no argument, then one more each */
	TYPE_STATIC = TYPE_PROTO + APART_ARGUMENTS + 1,
	TYPE_GLOBAL, /* with no argument, then one more each */
};

static int add_proto(struct btf *btf, int n_arguments)
{
	int id = btf__add_func_proto(btf, TYPE_NUMBER), err = 0;

	for (int i = 0; id > 0 && !err && i < n_arguments; i++)
		err = btf__add_func_param(btf, "argument", TYPE_NUMBER);
	return err ?: id;
}

/* @return 0; -EINVAL: types have other numbers than those above; others, as of bpf(2) */
static int make_types(struct btf *btf)
{
	int id = btf__add_int(btf, "int", sizeof(int), BTF_INT_SIGNED);

	for (int i = 0; id > 0 && i <= APART_ARGUMENTS; i++)
		id = add_proto(btf, i);
	if (id > 0)
		id = btf__add_func(btf, "function", BTF_FUNC_STATIC, TYPE_PROTO);
	for (int i = 0; id > 0 && i <= APART_ARGUMENTS; i++)
		id = btf__add_func(btf, "function_apart", BTF_FUNC_GLOBAL,
				   TYPE_PROTO + i);
	if (id > 0 && id != TYPE_GLOBAL + APART_ARGUMENTS)
		return -EINVAL;
	return id < 0 ? id : btf__load_into_kernel(btf);
}

/* ---- Functions ------------------------------------------------------------------ */

/* @return the index of the mark; APART_MARKS: the instruction is none */
static uint32_t mark_of(const struct bpf_insn *insn)
{
	const uint32_t mark = (uint32_t)insn->imm - APART_MARK;

	return insn->code == (BPF_ALU64 | BPF_MOV | BPF_K) ?
		       min_u64(mark, APART_MARKS) :
		       APART_MARKS;
}

/* Of the function from @start to @end. */
static uint32_t type_of(const struct code *code, uint32_t features,
			size_t start, size_t end)
{
	uint32_t mark = APART_MARKS;

	for (size_t i = start; i < end && mark == APART_MARKS; i++)
		mark = mark_of(&code->insns[i]);
	return mark < APART_MARKS && features >> mark / (APART_ARGUMENTS + 1) & 1 ?
		       TYPE_GLOBAL + mark % (APART_ARGUMENTS + 1) :
		       TYPE_STATIC;
}

static void find_functions(const struct code *code, uint32_t features,
			   struct functions *functions, bool *is_start)
{
	size_t end = code->n;

	is_start[0] = true;
	for (size_t i = 0; i < code->n; i++)
		is_start[functions_called(code->insns, i)] = true;
	for (size_t i = 0; i < code->n; i++)
		functions->n += is_start[i];
	for (size_t i = code->n, at = functions->n; i-- > 0;) {
		if (!is_start[i])
			continue;
		functions->infos[--at] = (struct bpf_func_info){
			.insn_off = i,
			.type_id = type_of(code, features, i, end),
		};
		end = i;
	}
}

int functions_describe(const struct code *code, uint32_t features,
		       struct functions *ret)
{
	bool *is_start = calloc(code->n, sizeof(*is_start));

	*ret = (struct functions){
		.btf = btf__new_empty(),
		.infos = calloc(code->n, sizeof(*ret->infos)),
	};
	if (ret->btf && ret->infos && is_start)
		find_functions(code, features, ret, is_start);
	free(is_start);
	return ret->n ? make_types(ret->btf) : -ENOMEM;
}

void functions_set(const struct functions *functions,
		   struct bpf_prog_load_opts *opts)
{
	opts->prog_btf_fd = btf__fd(functions->btf);
	opts->func_info = functions->infos;
	opts->func_info_cnt = functions->n;
	opts->func_info_rec_size = sizeof(*functions->infos);
}

void functions_done(struct functions *functions)
{
	btf__free(functions->btf);
	free(functions->infos);
	*functions = (struct functions){ 0 };
}
