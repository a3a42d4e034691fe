/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Classic BPF to eBPF, in a function that takes a struct __sk_buff. The code sees the
 * frame as it is in the buffer or, in the part of translate_start_tagged(), as on the wire,
 * with the VLAN tag that the kernel keeps beside it. A load beyond the end of the frame
 * rejects it.
 *
 * The code uses R6 to R9, and TRANSLATE_STACK bytes of stack.
 */
#ifndef NETOBS_FILTER_TRANSLATE_H
#define NETOBS_FILTER_TRANSLATE_H

#include "classic.h"
#include "code.h"

#include <stdbool.h>

enum {
	TRANSLATE_STACK = 96,
	TRANSLATE_CONTEXT = BPF_REG_6 /* struct __sk_buff */
};

/*
 * Begin the function. Its code may pull packets, so the pointers into packets that its
 * caller has are invalid afterwards.
 *
 * @param reach      the largest classic_reach() of the programs that follow
 * @param len_field  offset in struct __sk_buff of the frame's length on the wire
 */
void translate_start(struct code *code, uint32_t reach, size_t len_field);

/*
 * Begin the part for Ethernet frames with a tag beside them.
 *
 * @return a label, which has to be placed in front of the part for all others
 */
uint32_t translate_start_tagged(struct code *code);

/* End that part, for another expression. */
void translate_end_tagged(struct code *code);

/*
 * Append @classic. Behind its last instruction R0 has its result; 0: the frame is rejected.
 *
 * @param is_tagged  for the part of translate_start_tagged()
 * @return 0; -EINVAL: not a valid classic program for frames; -ENOMEM
 */
int translate(const struct classic *classic, bool is_tagged, struct code *code);

#endif
