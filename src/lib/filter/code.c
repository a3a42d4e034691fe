/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "code.h"

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
