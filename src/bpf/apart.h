/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that the kernel's verifier follows once, with any arguments, and not for each call.
 * It knows them by their type, "global", which libbpf hands over with a program. A program with
 * a generated filter is put together without libbpf: there, a mark shows which these are.
 */
#ifndef NETOBS_BPF_APART_H
#define NETOBS_BPF_APART_H

/* What has to be on for a function to be called. COMPAT(<6.8): the verifier follows all that are
 * global, also where nothing calls them. */
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
 * In a function that is __noinline and not static, and returns a number. Where in it changes how
 * the compiler uses registers, and so what the verifier follows: see bpf.verifier.
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
