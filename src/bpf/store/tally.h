/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How two tallies of a flow become one, in the programs and in user space. */
#ifndef NETOBS_BPF_STORE_TALLY_H
#define NETOBS_BPF_STORE_TALLY_H

#include "attrs.h"

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
