/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hashes that an attacker cannot aim at: NH (Black, Halevi, Krawczyk, Krovetz and
 * Rogaway: UMAC, CRYPTO '99) with a finaliser. Each pair of 32-bit words is
 * multiplied after a secret has been added to both; the 64-bit products are
 * summed, so they overlap in the pipeline.
 *
 * Of any two different keys, whatever they have in common or cancels out, the sums
 * are the same for one secret in 2^32 at most. Multiplying by secrets instead,
 * x * k, would not do: differences in the highest bits alone reach only the highest
 * bits of a sum, for any k.
 *
 * The finaliser is public. It turns sums, which are in regular steps
 * of unknown size if the keys are, into bits that all depend on the whole sum.
 */
#ifndef NETOBS_BPF_STORE_HASH_WORDS_H
#define NETOBS_BPF_STORE_HASH_WORDS_H

#ifdef __bpf__
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#else
#include <linux/types.h>
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __always_inline __u64 hash_words(__u32 a, __u32 b,
					const volatile __u32 *secret)
{
	__u64 product = (__u64)(a + secret[0]) * (b + secret[1]);

	asm volatile("" : "+r"(product));
	return product;
}

static __always_inline __u64 hash_pair(const __u32 *words,
				       const volatile __u32 *secret)
{
	return hash_words(words[0], words[1], secret);
}

/* The constants of David Stafford's 13th variant of the finaliser of MurmurHash3. */
static __always_inline __u64 hash_finish(__u64 sum)
{
	sum = (sum ^ sum >> 30) * 0xbf58476d1ce4e5b9ULL;
	sum = (sum ^ sum >> 27) * 0x94d049bb133111ebULL;
	return sum ^ sum >> 31;
}

#endif
