/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "code.h"

#include "base/util.h"
#include "bpf/apart.h"
#include "bpf/types.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

/* Make room for one more element: arrays double when they are full. */
static void *grow_array(struct code *code, void *array, uint32_t n, size_t size)
{
	void *grown;

	if (code->err || (n && n & (n - 1)))
		return array;
	grown = realloc(array, (n ? 2 * n : 1) * size);
	if (!grown)
		code->err = -ENOMEM;
	return grown ?: array;
}

void code_done(struct code *code)
{
	free(code->insns);
	free(code->jumps);
	free(code->labels);
	*code = (struct code){ 0 };
}

void code_add(struct code *code, struct bpf_insn insn)
{
	code->insns =
		grow_array(code, code->insns, code->n, sizeof(*code->insns));
	if (!code->err)
		code->insns[code->n++] = insn;
}

uint32_t code_label(struct code *code)
{
	code->labels = grow_array(code, code->labels, code->n_labels,
				  sizeof(*code->labels));
	if (code->err)
		return 0;
	code->labels[code->n_labels] = CODE_UNPLACED;
	return code->n_labels++;
}

void code_place(struct code *code, uint32_t label)
{
	if (!code->err)
		code->labels[label] = code->n;
}

void code_jump(struct code *code, struct bpf_insn insn, uint32_t label)
{
	code->jumps = grow_array(code, code->jumps, code->n_jumps,
				 sizeof(*code->jumps));
	if (!code->err)
		code->jumps[code->n_jumps++] =
			(struct code_jump){ code->n, label };
	code_add(code, insn);
}

int code_link(struct code *code)
{
	for (uint32_t i = 0; i < code->n_jumps && !code->err; i++) {
		const struct code_jump *jump = &code->jumps[i];
		uint32_t target = code->labels[jump->label];
		int64_t off = (int64_t)target - jump->at - 1;

		if (target == CODE_UNPLACED)
			code->err = -EINVAL;
		else if (off != (int16_t)off)
			code->err = -E2BIG;
		else
			code->insns[jump->at].off = (int16_t)off;
	}
	return code->err;
}

/* ---- Frames -------------------------------------------------------------------------- */

enum { CTX = FRAME_CONTEXT, DATA = BPF_REG_9, FP = BPF_REG_10 };

void frame_load_field(struct code *code, uint8_t dst, size_t offset)
{
	code_add(code, code_load(BPF_W, dst, CTX, (int16_t)offset));
}

/* R2: the end of the linear part. */
static void add_pointers(struct code *code)
{
	frame_load_field(code, DATA, offsetof(struct __sk_buff, data));
	frame_load_field(code, BPF_REG_2, offsetof(struct __sk_buff, data_end));
}

/* Pull the first @reach bytes of the frame, if they are not in the linear part. */
static void add_pull(struct code *code, uint32_t reach)
{
	uint32_t here = code_label(code), pull = code_label(code),
		 whole = code_label(code);

	code_add(code, code_alu64_reg(BPF_MOV, BPF_REG_1, DATA));
	code_add(code, code_alu64_imm(BPF_ADD, BPF_REG_1, (int32_t)reach));
	code_jump(code, code_jump64_reg(BPF_JLE, BPF_REG_1, BPF_REG_2), here);
	frame_load_field(code, BPF_REG_3, offsetof(struct __sk_buff, len));
	code_add(code, code_alu64_reg(BPF_SUB, BPF_REG_2, DATA));
	code_jump(code, code_jump64_reg(BPF_JGE, BPF_REG_2, BPF_REG_3), whole);
	code_add(code, code_alu64_reg(BPF_MOV, BPF_REG_2, BPF_REG_3));
	code_jump(code, code_jump64_imm(BPF_JLE, BPF_REG_2, (int32_t)reach),
		  pull);
	code_add(code, code_alu64_imm(BPF_MOV, BPF_REG_2, (int32_t)reach));
	code_place(code, pull);
	code_add(code, code_alu64_reg(BPF_MOV, BPF_REG_1, CTX));
	code_add(code, code_call(BPF_FUNC_skb_pull_data));
	code_place(code, whole);
	add_pointers(code);
	code_place(code, here);
}

/* Call the helper; R1 is set, the other arguments are set here. */
static void add_find_carried(struct code *code,
			     const struct frame_carried *carried)
{
	struct bpf_insn call = code_call(0);

	code_add(code,
		 code_alu64_imm(BPF_MOV, BPF_REG_2, (int32_t)carried->reach));
	call.src_reg = BPF_PSEUDO_CALL;
	call.imm = (int32_t)carried->function - (int32_t)code->n - 1;
	code_add(code, call);
	code_add(code, code_store(BPF_DW, FP, FRAME_CARRIED_AT, BPF_REG_0));
}

/* The smaller one of where the frame ends, in R1, and where its IP header says. */
static void add_carried_len(struct code *code)
{
	uint32_t shorter = code_label(code);

	code_add(code, code_load(BPF_W, BPF_REG_2, FP, FRAME_CARRIED_END));
	code_jump(code, code_jump64_reg(BPF_JLE, BPF_REG_1, BPF_REG_2), shorter);
	code_add(code, code_alu64_reg(BPF_MOV, BPF_REG_1, BPF_REG_2));
	code_place(code, shorter);
	code_add(code, code_load(BPF_H, BPF_REG_2, FP, FRAME_CARRIED_OFFSET));
	code_add(code, code_alu64_reg(BPF_SUB, BPF_REG_1, BPF_REG_2));
	code_add(code, code_store(BPF_W, FP, FRAME_CARRIED_LEN, BPF_REG_1));
}

void frame_start(struct code *code, uint32_t reach, size_t len_field,
		 const struct frame_carried *carried)
{
	code_add(code, code_alu64_reg(BPF_MOV, CTX, BPF_REG_1));
	if (carried)
		add_find_carried(code, carried);
	add_pointers(code);
	add_pull(code, reach);
	code_add(code, code_store(BPF_DW, FP, FRAME_DATA_END, BPF_REG_2));
	frame_load_field(code, BPF_REG_1, len_field);
	code_add(code, code_store(BPF_W, FP, FRAME_LEN, BPF_REG_1));
	if (carried)
		add_carried_len(code);
}

void frame_choose_carried(struct code *code, uint32_t none, uint32_t ip)
{
	code_add(code, code_load(BPF_H, BPF_REG_1, FP, FRAME_CARRIED_KIND));
	code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_1, 0), none);
	code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_1, CARRIED_IP >> 16),
		  ip);
}

static void add_to_len(struct code *code, int32_t bytes)
{
	code_add(code, code_load(BPF_W, BPF_REG_1, FP, FRAME_LEN));
	code_add(code, code_alu32_imm(BPF_ADD, BPF_REG_1, (uint32_t)bytes));
	code_add(code, code_store(BPF_W, FP, FRAME_LEN, BPF_REG_1));
}

uint32_t frame_start_tagged(struct code *code)
{
	uint32_t untagged = code_label(code);

	frame_load_field(code, BPF_REG_2,
			 offsetof(struct __sk_buff, vlan_present));
	code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_2, 0), untagged);
	add_to_len(code, FRAME_TAG_LEN);
	frame_load_field(code, BPF_REG_1, offsetof(struct __sk_buff, vlan_proto));
	code_add(code,
		 code_insn(BPF_ALU | BPF_END | BPF_TO_BE, BPF_REG_1, 0, 0, 16));
	code_add(code, code_alu32_imm(BPF_LSH, BPF_REG_1, 16));
	frame_load_field(code, BPF_REG_2, offsetof(struct __sk_buff, vlan_tci));
	code_add(code, code_alu32_reg(BPF_OR, BPF_REG_1, BPF_REG_2));
	code_add(code, code_store(BPF_W, FP, FRAME_TAG, BPF_REG_1));
	return untagged;
}

void frame_end_tagged(struct code *code)
{
	add_to_len(code, -FRAME_TAG_LEN);
}

/* ---- Functions ----------------------------------------------------------------------- */

/* @return the index of the function that the instruction calls; 0: it calls none */
static size_t called(const struct bpf_insn *insns, size_t i)
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

/* @return the type of the function from @start to @end */
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
		is_start[called(code->insns, i)] = true;
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

/* ---- judge() ---------------------------------------------------------------------- */

/* Instructions of a program. */
struct range {
	size_t start; /* 0: no function */
	size_t end;
};

/* @return the function that is called first in @caller */
static struct range find_called(const struct bpf_insn *insns, size_t n,
				struct range caller)
{
	struct range found = { .end = n };

	for (size_t i = caller.start; !found.start && i < caller.end; i++)
		found.start = called(insns, i);
	for (size_t i = 0; i < n; i++) {
		size_t function = called(insns, i);

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
	size_t n; /* instructions that are left */
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

/* @return the index of an instruction after parts were removed, and judge() was moved to the end */
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

int functions_splice(struct code *code, const struct filter_template *template,
		     bool has_inner, uint32_t *ret_find_carried)
{
	const struct bpf_insn *insns = bpf_program__insns(template->program);
	size_t n = bpf_program__insn_cnt(template->program);
	struct parts parts = find_parts(insns, n, has_inner);

	if (!parts.judge.start || (has_inner && !parts.find_carried.start))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		size_t function = called(insns, i);
		struct bpf_insn insn = insns[i];

		if (function)
			insn.imm = (int)(find_moved(&parts, function) -
					 find_moved(&parts, i) - 1);
		if (!is_gone(&parts, i))
			code_add(code, insn);
	}
	if (!code->err)
		filter_template_restore(template, code->insns);
	*ret_find_carried = find_moved(&parts, parts.find_carried.start);
	return 0;
}
