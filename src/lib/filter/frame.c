/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "frame.h"

#include "bpf/types.h"

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
