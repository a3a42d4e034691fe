/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* eBPF instructions that are put together at run time, with labels to jump to. */
#ifndef NETOBS_FILTER_CODE_H
#define NETOBS_FILTER_CODE_H

#include <linux/bpf.h>
#include <stdint.h>

struct code_jump {
	uint32_t at;
	uint32_t label;
};

struct code {
	struct bpf_insn *insns;
	struct code_jump *jumps;
	uint32_t *labels; /* positions of labels; CODE_UNPLACED */
	uint32_t n, n_jumps, n_labels;
	int err; /* error of the first call that failed; later calls do nothing */
};

#define CODE_UNPLACED UINT32_MAX

void code_done(struct code *code);

/* Append an instruction. */
void code_add(struct code *code, struct bpf_insn insn);

/** @return a label to place once, before or after the jumps to it */
uint32_t code_label(struct code *code);

/* Put @label in front of the next instruction. */
void code_place(struct code *code, uint32_t label);

/* Append a jump whose offset code_link() sets. */
void code_jump(struct code *code, struct bpf_insn insn, uint32_t label);

/**
 * Resolve all jumps.
 *
 * @return 0; -ENOMEM: of an earlier call; -E2BIG: a jump is farther than an
 *         instruction can say; -EINVAL: a label was not placed
 */
int code_link(struct code *code);

/* ---- Instructions, named as in the kernel's own helpers ---------------------- */

static inline struct bpf_insn code_insn(uint8_t op, uint8_t dst, uint8_t src,
					int16_t off, int32_t imm)
{
	return (struct bpf_insn){ op, dst, src, off, imm };
}

static inline struct bpf_insn code_alu64_imm(uint8_t op, uint8_t dst, int32_t imm)
{
	return code_insn(BPF_ALU64 | op | BPF_K, dst, 0, 0, imm);
}

static inline struct bpf_insn code_alu64_reg(uint8_t op, uint8_t dst, uint8_t src)
{
	return code_insn(BPF_ALU64 | op | BPF_X, dst, src, 0, 0);
}

static inline struct bpf_insn code_alu32_imm(uint8_t op, uint8_t dst, uint32_t imm)
{
	return code_insn(BPF_ALU | op | BPF_K, dst, 0, 0, (int32_t)imm);
}

static inline struct bpf_insn code_alu32_reg(uint8_t op, uint8_t dst, uint8_t src)
{
	return code_insn(BPF_ALU | op | BPF_X, dst, src, 0, 0);
}

static inline struct bpf_insn code_load(uint8_t size, uint8_t dst, uint8_t src,
					int16_t off)
{
	return code_insn(BPF_LDX | BPF_MEM | size, dst, src, off, 0);
}

static inline struct bpf_insn code_store(uint8_t size, uint8_t dst, int16_t off,
					 uint8_t src)
{
	return code_insn(BPF_STX | BPF_MEM | size, dst, src, off, 0);
}

/* Add to memory: the verifier does not know the sum. */
static inline struct bpf_insn code_add_to(uint8_t size, uint8_t dst,
					  int16_t off, uint8_t src)
{
	return code_insn(BPF_STX | BPF_XADD | size, dst, src, off, 0);
}

static inline struct bpf_insn code_jump32_imm(uint8_t op, uint8_t dst,
					      uint32_t imm)
{
	return code_insn(BPF_JMP32 | op | BPF_K, dst, 0, 0, (int32_t)imm);
}

static inline struct bpf_insn code_jump32_reg(uint8_t op, uint8_t dst, uint8_t src)
{
	return code_insn(BPF_JMP32 | op | BPF_X, dst, src, 0, 0);
}

static inline struct bpf_insn code_jump64_reg(uint8_t op, uint8_t dst, uint8_t src)
{
	return code_insn(BPF_JMP | op | BPF_X, dst, src, 0, 0);
}

static inline struct bpf_insn code_jump64_imm(uint8_t op, uint8_t dst, int32_t imm)
{
	return code_insn(BPF_JMP | op | BPF_K, dst, 0, 0, imm);
}

static inline struct bpf_insn code_jump_always(void)
{
	return code_insn(BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

static inline struct bpf_insn code_call(int32_t helper)
{
	return code_insn(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

static inline struct bpf_insn code_exit(void)
{
	return code_insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

#endif
