/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that the kernel's verifier follows once, with any arguments, and not for each call.
 * It knows them by their type, "global", which libbpf hands over with a program. A program with
 * a generated filter is put together without libbpf: there, a mark shows which these are.
 */
#ifndef NETOBS_BPF_APART_H
#define NETOBS_BPF_APART_H

/* The feature that calls a function. COMPAT(<6.8): the verifier walks every global function, even
 * if nothing calls it. */
enum apart_feature {
	APART_ALWAYS,
	APART_RTT,
	APART_ALERTS,
	APART_FEATURES,
};

enum {
	APART_ARGUMENTS = 5, /* at most: all are numbers */
	APART_MARK = 0x6e627300,
	APART_MARKS = APART_FEATURES * (APART_ARGUMENTS + 1),
};

/*
 * Put it into a function that is __noinline, not static, and returns a number. Its place there
 * changes which registers the compiler uses, and so the cost to the verifier: see bpf.verifier.
 */
#define VERIFIED_APART(feature, n_arguments)                           \
	do {                                                           \
		__u64 mark;                                            \
                                                                       \
		asm volatile("%0 = %1"                                 \
			     : "=r"(mark)                              \
			     : "i"(APART_MARK +                        \
				   (feature) * (APART_ARGUMENTS + 1) + \
				   (n_arguments)));                    \
	} while (0)

#endif
