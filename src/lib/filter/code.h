/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A frame as the generated code sees it: as it is in the buffer; as on the wire, with the
 * VLAN tag that the kernel keeps beside it; or what a tunnel carries. The code is a function
 * that takes a struct __sk_buff.
 */
#ifndef NETOBS_FILTER_CODE_H
#define NETOBS_FILTER_CODE_H

#include "classic.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* eBPF instructions that are put together at run time, with labels to jump to. */

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

enum frame_view {
	FRAME_BUFFER,
	FRAME_TAGGED,  /* the part of frame_start_tagged() */
	FRAME_CARRIED, /* behind frame_choose_carried() */
};

/* The register and the stack that all of the code shares. */
enum {
	FRAME_CONTEXT = BPF_REG_6, /* struct __sk_buff */

	FRAME_DATA_END = -8,
	FRAME_LEN = -12,	/* of the frame on the wire, 32 bits */
	FRAME_TAG = -16,	/* the tag's four bytes as a number */
	FRAME_CARRIED_AT = -24, /* the result of find_carried(), little-endian: */
	FRAME_CARRIED_OFFSET = FRAME_CARRIED_AT,
	FRAME_CARRIED_KIND = FRAME_CARRIED_AT + 2,
	FRAME_CARRIED_END = FRAME_CARRIED_AT + 4,
	FRAME_CARRIED_LEN = -28, /* as FRAME_LEN */
	FRAME_MATCHES = -40,	 /* 64 bits for the code between the programs */
	FRAME_STACK = -40,
};

/* The position of a tag in a frame. */
enum {
	FRAME_TAG_START = 12,
	FRAME_TAG_LEN = 4,
	FRAME_TAG_END = FRAME_TAG_START + FRAME_TAG_LEN
};

/* The needs of programs for the frames of tunnels. */
struct frame_carried {
	uint32_t function; /* index in the code at which find_carried() of src/bpf/judge.h begins */
	uint32_t reach; /* the largest classic_reach() of them */
};

/*
 * Begin the function. Its code may pull packets, so the pointers into packets that its
 * caller has are invalid afterwards.
 *
 * @param reach      the largest classic_reach() of the other programs that follow
 * @param len_field  offset in struct __sk_buff of the frame's length on the wire
 * @param carried    NULL: no programs for FRAME_CARRIED follow
 */
void frame_start(struct code *code, uint32_t reach, size_t len_field,
		 const struct frame_carried *carried);

/*
 * Begin the part for Ethernet frames with a tag beside them.
 *
 * @return a label, which has to be placed in front of the part for all others
 */
uint32_t frame_start_tagged(struct code *code);

/* End that part; R0 stays as it is. */
void frame_end_tagged(struct code *code);

/* Jump to @none unless the frame is one of a tunnel, and to @ip if it carries no Ethernet. */
void frame_choose_carried(struct code *code, uint32_t none, uint32_t ip);

/* Load a field of 32 bits of struct __sk_buff. */
void frame_load_field(struct code *code, uint8_t dst, size_t offset);

/*
 * Classic BPF to eBPF. A load beyond the end of the frame rejects it. The code uses R6 to R9,
 * and 112 bytes of stack at most.
 */

/*
 * Append @classic to code of frame_start(). Behind its last instruction R0 has its result; 0:
 * the frame is rejected.
 *
 * @return 0; -EINVAL: not a valid classic program for frames; -ENOMEM
 */
int translate(const struct classic *classic, enum frame_view view,
	      struct code *code);

/*
 * Programs that are loaded only for filter_load() to copy them. libbpf relocates what it loads,
 * and nothing else. The kernel's verifier would follow each of them twice, which is most of what
 * loading costs: so the original ends after its first instructions, and only the copy goes on.
 */

struct bpf_object;
struct bpf_prog_load_opts;
struct bpf_program;
struct btf;
struct filter_template;

enum { TEMPLATE_END = 2 /* instructions that end the program */ };

struct filter_template {
	const char *name;		   /* name of the program */
	const struct bpf_program *program; /* NULL before filter_template_init() */
	bool ends_early;		   /* these are replaced: */
	uint32_t end;
	struct bpf_insn replaced[TEMPLATE_END];
};

/**
 * Find the program in an object that is open, and end it early. One without a place for that is
 * loaded as it is.
 *
 * @return 0; -ENOENT: the object has no such program; -ENOMEM
 */
int filter_template_init(struct filter_template *template,
			 const struct bpf_object *object);

/* Undo the early end in a copy of the program. @insns: of the copy */
void filter_template_restore(const struct filter_template *template,
			     struct bpf_insn *insns);

/* ---- Functions ----------------------------------------------------------------------- */

/*
 * The functions of a program: which ones the kernel's verifier follows apart from it, see
 * bpf/apart.h, and how its stub of judge() is taken out.
 */

struct functions {
	struct btf *btf;
	struct bpf_func_info *infos;
	uint32_t n;
};

/**
 * Describe the functions of @code, whose jumps are linked, to the kernel.
 *
 * @param features  that are on: 1 << enum apart_feature
 * @param ret       to be released with functions_done(), also if this fails
 * @return 0; others, as of bpf(2)
 */
int functions_describe(const struct code *code, uint32_t features,
		       struct functions *ret);

/* Add them to what a program is loaded with. @functions has to outlive @opts. */
void functions_set(const struct functions *functions,
		   struct bpf_prog_load_opts *opts);

void functions_done(struct functions *functions);

/* ---- judge() ---------------------------------------------------------------------- */

/**
 * Copy the program without judge() into @code, which is empty. The caller appends another judge(): calls go
 * to the end of the copy.
 *
 * @param has_inner         the new judge() calls find_carried(): the copy keeps that function
 * @param ret_find_carried  where that function begins in the copy, with @has_inner
 * @return 0; -EINVAL: the program does not call them
 */
int functions_splice(struct code *code, const struct filter_template *template,
		     bool has_inner, uint32_t *ret_find_carried);

#endif
