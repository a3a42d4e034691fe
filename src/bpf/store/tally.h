/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Merges the attributes of packets into their flow, by the rules of the catalogue, and two tallies
 * of a flow into one: in the programs and in user space.
 */
#ifndef NETOBS_BPF_STORE_TALLY_H
#define NETOBS_BPF_STORE_TALLY_H

#include "bpf/parse/cursor.h"

#define ATTR_first(member) \
	if (is_earlier)    \
		to->member = from->member;
#define ATTR_last(member) \
	if (is_later)     \
		to->member = from->member;
#define ATTR_min(member)               \
	if (from->member < to->member) \
		to->member = from->member;
#define ATTR_max(member)               \
	if (from->member > to->member) \
		to->member = from->member;
#define FIELD(...)
#define POINT_FIELD(...)
#define ATTR_FIELD(member, type, bit, merge, ...) ATTR_##merge(member)

/* Compare all attributes except the marks. Most packets of a flow have the same. */
static __always_inline bool has_attrs(const struct flow_attrs *a,
				      const struct flow_attrs *b)
{
	const __u32 *x = (const __u32 *)a, *y = (const __u32 *)b;

	return !((x[1] ^ y[1]) | (x[2] ^ y[2]));
}

/*
 * Merge all attributes except the marks, which callers or, or count. @is_earlier, @is_later: the
 * packets of
 * @from came before or after the packets of @to.
 */
static __always_inline void attrs_merge(struct flow_attrs *to,
					const struct flow_attrs *from,
					bool is_earlier, bool is_later)
{
#include "catalogue/fields.def"
}

static __always_inline void tally_add(struct flow_tally *to,
				      const struct flow_tally *from)
{
	to->packets += from->packets;
	to->bytes += from->bytes;
	to->l2_bytes += from->l2_bytes;
	to->attrs.marks |= from->attrs.marks;
	attrs_merge(&to->attrs, &from->attrs, from->first_ns < to->first_ns,
		    from->last_ns >= to->last_ns);
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	if (from->attrs.has_mac && !to->attrs.has_mac) {
		to->attrs.has_mac = from->attrs.has_mac;
		__builtin_memcpy(to->macs, from->macs, sizeof(to->macs));
	}
}

#endif
