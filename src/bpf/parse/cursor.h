/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A bounded walk over a packet's bytes. */
#ifndef NETOBS_BPF_PARSE_CURSOR_H
#define NETOBS_BPF_PARSE_CURSOR_H

#include "bpf/types.h"

#ifndef __bpf__
#include <stdbool.h>
#include <stddef.h>
#else
#include <bpf/bpf_helpers.h>
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline, unused))
#endif

enum {
	/* Network headers end here at the latest, else UNPARSED_TOO_DEEP. */
	CURSOR_LIMIT = 512,
	CURSOR_MASK = 2 * CURSOR_LIMIT - 1,
	/* No byte beyond is looked at: a TCP header more. */
	CURSOR_REACH = CURSOR_LIMIT + 20,
};

#ifdef __bpf__
/*
 * Limit @n to @max, a constant. Some verifiers, that of Linux 5.10 among them, know the limit of
 * the register that is compared, and not of copies that the compiler makes.
 */
#define LIMITED(n, max)                             \
	({                                          \
		__u64 limited_ = (n);               \
                                                    \
		asm("if %0 < %1 goto +1\n\t%0 = %1" \
		    : "+r"(limited_)                \
		    : "i"(max));                    \
		limited_;                           \
	})
#endif

struct cursor {
	const __u8 *start;
	const __u8 *pos;
	const __u8 *end;
};

/* Claim the next @len bytes, or NULL when the packet is too short. */
static __always_inline const void *cursor_take(struct cursor *c, __u32 len)
{
	const __u8 *p = c->pos;

	if (p + len > c->end)
		return NULL;
	c->pos = p + len;
	return p;
}

/* Bytes walked so far. */
static __always_inline __u32 cursor_offset(const struct cursor *c)
{
	return c->pos - c->start;
}

/*
 * False beyond the limit. For the verifier it is more: the difference of two packet
 * pointers is a number without known bounds, so after the check all paths
 * to here look alike, and what follows is verified once and not once per path.
 */
static __always_inline bool cursor_settle(struct cursor *c)
{
	const __u8 *pos = c->pos;
	__u64 offset;

	asm volatile("" : "+r"(pos)); /* keep the compiler from folding it */
	offset = pos - c->start;
	if (offset > CURSOR_LIMIT)
		return false;
	/* COMPAT(<5.16): forgotten, should it have been on the stack. */
	asm volatile("" : "+r"(offset));
	c->pos = c->start + (offset & CURSOR_MASK);
	return true;
}

/*
 * 0, but the verifier does not know that. Added to a value that it knows on each path, it makes the
 * paths look alike.
 */
static __always_inline __u32 cursor_unknown_zero(const struct cursor *c)
{
	const __u8 *pos = c->pos;

	asm volatile("" : "+r"(pos)); /* keep the compiler from folding it */
	return pos - c->pos;
}

#endif
