/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A program of an object without its stub of judge(). */
#ifndef NETOBS_FILTER_SPLICE_H
#define NETOBS_FILTER_SPLICE_H

#include "code.h"

#include <stdbool.h>

struct bpf_program;

/**
 * Add all of @program but judge(), with calls of judge() going to what is added next.
 *
 * @param has_inner         find_carried(), which the stub calls, is needed
 * @param ret_find_carried  where that function begins then
 * @return 0; -EINVAL: the program does not call them
 */
int splice_program(struct code *code, const struct bpf_program *program,
		   bool has_inner, uint32_t *ret_find_carried);

#endif
