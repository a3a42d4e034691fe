/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Classic BPF to eBPF. A load beyond the end of the frame rejects it. The code uses R6 to R9,
 * and 112 bytes of stack at most.
 */
#ifndef NETOBS_FILTER_TRANSLATE_H
#define NETOBS_FILTER_TRANSLATE_H

#include "classic.h"
#include "frame.h"

/*
 * Append @classic to code of frame_start(). Behind its last instruction R0 has its result; 0:
 * the frame is rejected.
 *
 * @return 0; -EINVAL: not a valid classic program for frames; -ENOMEM
 */
int translate(const struct classic *classic, enum frame_view view,
	      struct code *code);

#endif
