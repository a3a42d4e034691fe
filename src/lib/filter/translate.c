/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Each classic instruction becomes a few of eBPF's, in the same order. The offsets in a
 * frame with a tag beside it differ, so it has a variant of the program, and does not
 * compute offsets when it runs.
 *
 * A load at a constant offset is compared with the end of the linear part, unless every
 * path to it has made that comparison. frame_start() pulls the bytes that such loads
 * need into the linear part.
 */
#include "code.h"

#include "base/util.h"
#include "bpf/parse/cursor.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
	CTX = FRAME_CONTEXT,
	A = BPF_REG_7,
	X = BPF_REG_8,
	DATA = BPF_REG_9,
	FP = BPF_REG_10,
};

/* The stack, below what code.h has there. */
enum {
	LOOPS = FRAME_STACK - 8, /* jumps back so far */
	BUFFER = LOOPS - 8,
	MEM = BUFFER - BPF_MEMWORDS * 4,
};
_Static_assert(MEM == -120, "tests/verifier/stack.py counts these bytes");

/* The most headers that protochain follows; a frame with more is rejected. */
enum { LOOPS_MAX = 16 };

enum { DIRECT_MASK = 0x7fff };
_Static_assert((int)CLASSIC_DIRECT_MAX <= (int)DIRECT_MASK,
	       "no offset loses a bit");

struct translator {
	struct code *code;
	const struct classic *classic;
	enum frame_view view;
	uint32_t *labels; /* of the instructions */
	uint32_t *checked; /* bytes that all paths to an instruction have checked */
	uint32_t reject, end;
	bool rejects; /* something jumps there: the verifier refuses dead code */
};

static void emit_insn(struct translator *t, struct bpf_insn insn)
{
	code_add(t->code, insn);
}

static void emit_jump(struct translator *t, struct bpf_insn insn, uint32_t label)
{
	code_jump(t->code, insn, label);
	t->rejects |= label == t->reject;
}

/* ---- Loads ----------------------------------------------------------------------- */

/* Convert from network byte order. */
static void add_swap(struct translator *t, uint8_t dst, uint32_t size)
{
	if (size > 1)
		emit_insn(t, code_insn(BPF_ALU | BPF_END | BPF_TO_BE, dst, 0, 0,
				       (int32_t)size * 8));
}

static uint8_t width_of(uint32_t size)
{
	return size == 4 ? BPF_W : size == 2 ? BPF_H : BPF_B;
}

/* There may be padding behind the packet in a tunnel. */
static void add_carried_check(struct translator *t, uint8_t end)
{
	emit_insn(t, code_load(BPF_W, BPF_REG_3, FP, FRAME_CARRIED_LEN));
	emit_jump(t, code_jump64_reg(BPF_JGT, end, BPF_REG_3), t->reject);
}

/* Reject frames of fewer than @end bytes, unless that has been done. */
static void add_check(struct translator *t, uint32_t *checked, uint32_t end)
{
	if (end <= *checked)
		return;
	*checked = end;
	if (t->view == FRAME_CARRIED) {
		emit_insn(t, code_alu64_imm(BPF_MOV, BPF_REG_2, (int32_t)end));
		add_carried_check(t, BPF_REG_2);
	}
	emit_insn(t, code_load(BPF_DW, BPF_REG_2, FP, FRAME_DATA_END));
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_1, DATA));
	emit_insn(t, code_alu64_imm(BPF_ADD, BPF_REG_1, (int32_t)end));
	emit_jump(t, code_jump64_reg(BPF_JGT, BPF_REG_1, BPF_REG_2), t->reject);
}

/* Bytes of the buffer itself. */
static void add_direct(struct translator *t, uint8_t dst, uint32_t off,
		       uint32_t size)
{
	emit_insn(t, code_load(width_of(size), dst, DATA, (int16_t)off));
	add_swap(t, dst, size);
}

/* The offset in the buffer of a byte of the frame that is not in the tag. */
static uint32_t buffer_offset(uint32_t off)
{
	return off < FRAME_TAG_START ? off : off - FRAME_TAG_LEN;
}

/* A load that reaches into the tag, which is in none of @dst, R2 and R3. */
static void add_from_tag(struct translator *t, uint32_t *checked, uint8_t dst,
			 uint32_t off, uint32_t size)
{
	uint32_t last = off + size - 1;

	if (last >= FRAME_TAG_END)
		add_check(t, checked, buffer_offset(last) + 1);
	else if (off < FRAME_TAG_START)
		add_check(t, checked, FRAME_TAG_START);
	emit_insn(t, code_load(BPF_W, BPF_REG_3, FP, FRAME_TAG));
	emit_insn(t, code_alu32_imm(BPF_MOV, dst, 0));
	for (uint32_t at = off; at <= last; at++) {
		bool is_tag = at >= FRAME_TAG_START && at < FRAME_TAG_END;

		if (is_tag) {
			emit_insn(t,
				  code_alu32_reg(BPF_MOV, BPF_REG_2, BPF_REG_3));
			emit_insn(t,
				  code_alu32_imm(BPF_RSH, BPF_REG_2,
						 8 * (FRAME_TAG_END - 1 - at)));
			emit_insn(t, code_alu32_imm(BPF_AND, BPF_REG_2, 0xff));
		} else {
			add_direct(t, BPF_REG_2, buffer_offset(at), 1);
		}
		emit_insn(t, code_alu32_imm(BPF_LSH, dst, 8));
		emit_insn(t, code_alu32_reg(BPF_OR, dst, BPF_REG_2));
	}
}

static bool touches_tag(uint32_t off, uint32_t size)
{
	return off < FRAME_TAG_END && off + size > FRAME_TAG_START;
}

static void add_absolute(struct translator *t, uint32_t *checked, uint8_t dst,
			 uint32_t off, uint32_t size)
{
	if (t->view == FRAME_TAGGED && touches_tag(off, size)) {
		add_from_tag(t, checked, dst, off, size);
		return;
	}
	if (t->view == FRAME_TAGGED)
		off = buffer_offset(off);
	add_check(t, checked, off + size);
	add_direct(t, dst, off, size);
}

/* The offset is in R1. */
static void add_carried_bound(struct translator *t, uint32_t size)
{
	if (t->view != FRAME_CARRIED)
		return;
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_2, BPF_REG_1));
	emit_insn(t, code_alu64_imm(BPF_ADD, BPF_REG_2, (int32_t)size));
	add_carried_check(t, BPF_REG_2);
}

/* Load by a helper, beyond the linear part or the frame. The offset is in R1. */
static void add_far(struct translator *t, uint8_t dst, uint32_t size)
{
	emit_jump(t, code_jump64_imm(BPF_JGT, BPF_REG_1, INT32_MAX), t->reject);
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_2, BPF_REG_1));
	if (t->view == FRAME_CARRIED) {
		emit_insn(t,
			  code_load(BPF_H, BPF_REG_1, FP, FRAME_CARRIED_OFFSET));
		emit_insn(t, code_alu64_reg(BPF_ADD, BPF_REG_2, BPF_REG_1));
	}
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_1, CTX));
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_3, FP));
	emit_insn(t, code_alu64_imm(BPF_ADD, BPF_REG_3, BUFFER));
	emit_insn(t, code_alu64_imm(BPF_MOV, BPF_REG_4, (int32_t)size));
	emit_insn(t, code_call(BPF_FUNC_skb_load_bytes));
	emit_jump(t, code_jump64_imm(BPF_JNE, BPF_REG_0, 0), t->reject);
	emit_insn(t, code_load(width_of(size), dst, FP, BUFFER));
	add_swap(t, dst, size);
}

/* Load A from the offset in R1. */
static void add_at(struct translator *t, uint32_t size)
{
	uint32_t far = code_label(t->code), done = code_label(t->code);

	emit_jump(t, code_jump64_imm(BPF_JGT, BPF_REG_1, CLASSIC_DIRECT_MAX),
		  far);
	/*
	 * Changes no value. The verifier of 5.10 may know bits of R1 that contradict the
	 * jump, does not see that this is dead code, and takes the sum for no pointer.
	 */
	emit_insn(t, code_alu64_imm(BPF_AND, BPF_REG_1, DIRECT_MASK));
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_2, DATA));
	emit_insn(t, code_alu64_reg(BPF_ADD, BPF_REG_2, BPF_REG_1));
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_3, BPF_REG_2));
	emit_insn(t, code_alu64_imm(BPF_ADD, BPF_REG_3, (int32_t)size));
	emit_insn(t, code_load(BPF_DW, BPF_REG_4, FP, FRAME_DATA_END));
	emit_jump(t, code_jump64_reg(BPF_JGT, BPF_REG_3, BPF_REG_4), far);
	emit_insn(t, code_load(width_of(size), A, BPF_REG_2, 0));
	add_swap(t, A, size);
	emit_jump(t, code_jump_always(), done);
	code_place(t->code, far);
	add_far(t, A, size);
	code_place(t->code, done);
}

/* The offset in R1 is one of a tagged frame. */
static void add_at_tagged(struct translator *t, uint32_t checked, uint32_t size)
{
	uint32_t before = code_label(t->code), behind = code_label(t->code),
		 done = code_label(t->code);

	emit_jump(t, code_jump64_imm(BPF_JGE, BPF_REG_1, FRAME_TAG_END), behind);
	emit_jump(t,
		  code_jump64_imm(BPF_JLE, BPF_REG_1,
				  FRAME_TAG_START - (int32_t)size),
		  before);
	for (uint32_t off = FRAME_TAG_START - size + 1; off < FRAME_TAG_END;
	     off++) {
		uint32_t next = code_label(t->code), known = checked;

		emit_jump(t, code_jump64_imm(BPF_JNE, BPF_REG_1, (int32_t)off),
			  next);
		add_from_tag(t, &known, A, off, size);
		emit_jump(t, code_jump_always(), done);
		code_place(t->code, next);
	}
	emit_jump(t, code_jump_always(), t->reject); /* for the verifier */
	code_place(t->code, behind);
	emit_insn(t, code_alu64_imm(BPF_SUB, BPF_REG_1, FRAME_TAG_LEN));
	code_place(t->code, before);
	add_at(t, size);
	code_place(t->code, done);
}

/* The load is beyond the end of any frame. */
static bool is_beyond_all(const struct classic_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_LD &&
	       BPF_MODE(insn->code) == BPF_IND && insn->k > INT32_MAX;
}

static void add_indirect(struct translator *t, uint32_t checked,
			 const struct classic_insn *insn)
{
	uint32_t size = classic_load_size(insn->code);

	if (is_beyond_all(insn)) {
		emit_jump(t, code_jump_always(), t->reject);
		return;
	}
	emit_insn(t, code_alu64_reg(BPF_MOV, BPF_REG_1, X));
	emit_insn(t, code_alu64_imm(BPF_ADD, BPF_REG_1, (int32_t)insn->k));
	add_carried_bound(t, size);
	if (t->view == FRAME_TAGGED)
		add_at_tagged(t, checked, size);
	else
		add_at(t, size);
}

static void add_constant_load(struct translator *t, uint32_t *checked,
			      const struct classic_insn *insn)
{
	bool is_header_len = BPF_CLASS(insn->code) == BPF_LDX;
	uint32_t size = classic_load_size(insn->code);
	uint8_t dst = is_header_len ? X : A;

	if (insn->k <= CLASSIC_DIRECT_MAX - size) {
		add_absolute(t, checked, dst, insn->k, size);
	} else {
		bool is_tagged = t->view == FRAME_TAGGED;

		emit_insn(t, code_alu32_imm(
				     BPF_MOV, BPF_REG_1,
				     insn->k - (is_tagged ? FRAME_TAG_LEN : 0)));
		add_carried_bound(t, size);
		add_far(t, dst, size);
	}
	if (!is_header_len)
		return;
	emit_insn(t, code_alu32_imm(BPF_AND, X, 0xf));
	emit_insn(t, code_alu32_imm(BPF_LSH, X, 2));
}

/* ---- The other instructions -------------------------------------------------------- */

static int16_t memory_slot(const struct classic_insn *insn)
{
	return (int16_t)(MEM + 4 * (int16_t)insn->k);
}

static void add_load(struct translator *t, uint32_t *checked,
		     const struct classic_insn *insn)
{
	uint8_t dst = BPF_CLASS(insn->code) == BPF_LD ? A : X;

	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
		emit_insn(t, code_alu32_imm(BPF_MOV, dst, insn->k));
		break;
	case BPF_LEN:
		emit_insn(t, code_load(BPF_W, dst, FP,
				       t->view == FRAME_CARRIED ?
					       FRAME_CARRIED_LEN :
					       FRAME_LEN));
		break;
	case BPF_MEM:
		emit_insn(t, code_load(BPF_W, dst, FP, memory_slot(insn)));
		break;
	case BPF_IND:
		add_indirect(t, *checked, insn);
		break;
	default:
		add_constant_load(t, checked, insn);
	}
}

/* As in libpcap, a divisor of 0 rejects the frame, and shifts may be of any width. */
static void add_alu(struct translator *t, const struct classic_insn *insn)
{
	uint8_t op = BPF_OP(insn->code);
	bool is_shift = op == BPF_LSH || op == BPF_RSH;

	if (op == BPF_NEG) {
		emit_insn(t, code_insn(BPF_ALU | BPF_NEG, A, 0, 0, 0));
	} else if (insn->code & BPF_X) {
		uint32_t clear = code_label(t->code), done = code_label(t->code);

		if (op == BPF_DIV || op == BPF_MOD)
			emit_jump(t, code_jump32_imm(BPF_JEQ, X, 0), t->reject);
		if (is_shift)
			emit_jump(t, code_jump32_imm(BPF_JGT, X, 31), clear);
		emit_insn(t, code_alu32_reg(op, A, X));
		if (is_shift)
			emit_jump(t, code_jump_always(), done);
		code_place(t->code, clear);
		if (is_shift)
			emit_insn(t, code_alu32_imm(BPF_MOV, A, 0));
		code_place(t->code, done);
	} else {
		emit_insn(t, code_alu32_imm(op, A, insn->k));
	}
}

/* The verifier accepts a loop that is counted. */
static void add_loop_limit(struct translator *t)
{
	emit_insn(t, code_load(BPF_DW, BPF_REG_1, FP, LOOPS));
	emit_insn(t, code_alu64_imm(BPF_ADD, BPF_REG_1, 1));
	emit_jump(t, code_jump64_imm(BPF_JGT, BPF_REG_1, LOOPS_MAX), t->reject);
	emit_insn(t, code_store(BPF_DW, FP, LOOPS, BPF_REG_1));
}

static void add_jump(struct translator *t, uint32_t i)
{
	const struct classic_insn *insn = &t->classic->insns[i];
	uint8_t op = BPF_OP(insn->code);

	if (op == BPF_JA) {
		if (classic_is_jump_back(i, insn))
			add_loop_limit(t);
		emit_jump(t, code_jump_always(),
			  t->labels[classic_jump_target(i, insn)]);
		return;
	}
	emit_jump(t,
		  insn->code & BPF_X ? code_jump32_reg(op, A, X) :
				       code_jump32_imm(op, A, insn->k),
		  t->labels[i + 1 + insn->jt]);
	if (insn->jf)
		emit_jump(t, code_jump_always(), t->labels[i + 1 + insn->jf]);
}

static void add_return(struct translator *t, const struct classic_insn *insn)
{
	if (BPF_RVAL(insn->code) == BPF_A)
		emit_insn(t, code_alu32_reg(BPF_MOV, BPF_REG_0, A));
	else
		emit_insn(t, code_alu32_imm(BPF_MOV, BPF_REG_0, insn->k));
	emit_jump(t, code_jump_always(), t->end);
}

static void add_insn(struct translator *t, uint32_t i, uint32_t *checked)
{
	const struct classic_insn *insn = &t->classic->insns[i];

	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
	case BPF_LDX:
		add_load(t, checked, insn);
		break;
	case BPF_ST:
		emit_insn(t, code_store(BPF_W, FP, memory_slot(insn), A));
		break;
	case BPF_STX:
		emit_insn(t, code_store(BPF_W, FP, memory_slot(insn), X));
		break;
	case BPF_ALU:
		add_alu(t, insn);
		break;
	case BPF_JMP:
		add_jump(t, i);
		break;
	case BPF_RET:
		add_return(t, insn);
		break;
	default:
		if (BPF_MISCOP(insn->code) == BPF_TAX)
			emit_insn(t, code_alu32_reg(BPF_MOV, X, A));
		else
			emit_insn(t, code_alu32_reg(BPF_MOV, A, X));
	}
}

/* ---- The whole ----------------------------------------------------------------------- */

static void note_checked(struct translator *t, uint32_t i, uint32_t checked)
{
	t->checked[i] = min_u64(t->checked[i], checked);
}

/* The successors of an instruction begin with the bytes that it has checked. */
static void note_successors(struct translator *t, uint32_t i, uint32_t checked)
{
	const struct classic_insn *insn = &t->classic->insns[i];

	if (BPF_CLASS(insn->code) == BPF_RET || is_beyond_all(insn))
		return;
	if (insn->code == (BPF_JMP | BPF_JA)) {
		note_checked(t, (uint32_t)classic_jump_target(i, insn), checked);
	} else if (BPF_CLASS(insn->code) == BPF_JMP) {
		note_checked(t, i + 1 + insn->jt, checked);
		note_checked(t, i + 1 + insn->jf, checked);
	} else {
		note_checked(t, i + 1, checked);
	}
}

static void prepare_labels(struct translator *t)
{
	uint32_t n = t->classic->n;

	for (uint32_t i = 0; i < n; i++) {
		t->labels[i] = code_label(t->code);
		t->checked[i] = i ? UINT32_MAX : 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct classic_insn *insn = &t->classic->insns[i];

		if (classic_is_jump_back(i, insn))
			note_checked(t, (uint32_t)classic_jump_target(i, insn),
				     0);
	}
}

static void add_insns(struct translator *t)
{
	for (uint32_t i = 0; i < t->classic->n; i++) {
		uint32_t checked = t->checked[i];

		code_place(t->code, t->labels[i]);
		if (checked == UINT32_MAX)
			continue; /* unreachable, which the verifier refuses */
		add_insn(t, i, &checked);
		note_successors(t, i, checked);
	}
}

static void add_zero(struct translator *t, int16_t off)
{
	emit_insn(t, code_insn(BPF_ST | BPF_MEM | BPF_DW, FP, 0, off, 0));
}

/*
 * The registers and the memory of classic BPF, all 0. Nothing is known to be in reach any
 * more, so the verifier walks what follows once, whatever path leads here.
 */
static void add_state(struct translator *t)
{
	frame_load_field(t->code, DATA, offsetof(struct __sk_buff, data));
	if (t->view == FRAME_CARRIED) {
		emit_insn(t,
			  code_load(BPF_H, BPF_REG_1, FP, FRAME_CARRIED_OFFSET));
		emit_insn(t, code_alu64_imm(BPF_AND, BPF_REG_1, CURSOR_MASK));
		emit_insn(t, code_alu64_reg(BPF_ADD, DATA, BPF_REG_1));
	}
	emit_insn(t, code_alu32_imm(BPF_MOV, A, 0));
	emit_insn(t, code_alu32_imm(BPF_MOV, X, 0));
	if (classic_has_loop(t->classic))
		add_zero(t, LOOPS);
	if (!classic_uses_memory(t->classic))
		return;
	for (int off = MEM; off < BUFFER; off += 8)
		add_zero(t, off);
}

int translate(const struct classic *classic, enum frame_view view,
	      struct code *code)
{
	cleanup_free uint32_t *labels = NULL, *checked = NULL;
	struct translator t = {
		.code = code,
		.classic = classic,
		.view = view,
	};

	if (!classic_is_valid(classic))
		return -EINVAL;
	labels = calloc(classic->n, sizeof(*labels));
	checked = calloc(classic->n, sizeof(*checked));
	if (!labels || !checked)
		return -ENOMEM;
	t.labels = labels;
	t.checked = checked;
	t.reject = code_label(code);
	t.end = code_label(code);
	add_state(&t);
	prepare_labels(&t);
	add_insns(&t);
	code_place(code, t.reject);
	if (t.rejects)
		emit_insn(&t, code_alu32_imm(BPF_MOV, BPF_REG_0, 0));
	code_place(code, t.end);
	return code->err;
}
