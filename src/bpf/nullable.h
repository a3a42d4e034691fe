/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arguments of tracepoints that may be NULL. */
#ifndef NETOBS_BPF_NULLABLE_H
#define NETOBS_BPF_NULLABLE_H

#include <bpf/bpf_helpers.h>

enum { ADDRESS_MIN = 4096 };

/*
 * COMPAT(<6.14): from Linux 6.4 on, verifiers took no argument of a tracepoint for NULL and left
 * comparisons with NULL out, so that the kernel crashed. They keep a comparison with another number.
 */
static __always_inline const void *nullable(const void *argument)
{
	if ((__u64)argument < ADDRESS_MIN)
		argument = NULL;
	barrier_var(argument); /* newer ones want the caller's comparison, too */
	return argument;
}

#endif
