/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts, for each interface, the packets that did not reach the store, by outcome. Each CPU has
 * slots of its own; a program takes one for an interface when it first has something to count.
 * User space reads and clears the slots of the generation at rest, and frees the slots of
 * interfaces that are gone. Packets of flows are not counted here: user space counts them.
 */
#ifndef NETOBS_BPF_STORE_OUTCOMES_H
#define NETOBS_BPF_STORE_OUTCOMES_H

#include "run.h"
#include "bpf/apart.h"

/* Find or take the slot of @origin; if there is none, the last slot, which is of no interface. */
static __always_inline struct outcome_slot *outcome_find(__u32 cpu_id,
							 __u64 origin)
{
	__u32 first = cpu_id * OUTCOME_SLOTS, index;
	struct outcome_slot *slot;

#pragma clang loop unroll(disable)
	for (__u32 look = 0; look < OUTCOME_LOOKS; look++) {
		index = first + outcome_place(origin, look);
		slot = bpf_map_lookup_elem(&outcome_slots, &index);
		if (slot && !slot->origin)
			slot->origin = origin;
		if (slot && slot->origin == origin)
			return slot;
	}
	index = first + OUTCOME_PLACES;
	return bpf_map_lookup_elem(&outcome_slots, &index);
}

/*
 * @place: outcome_index(). Global, so that the verifier walks it once, and its code is out
 * of the way of packets of flows.
 */
__noinline int outcome_add(__u32 cpu_id, __u64 origin, __u32 place,
			   __u64 packets, __u64 bytes)
{
	struct outcome_slot *slot = outcome_find(cpu_id, origin);
	struct count *counted;

	VERIFIED_APART(APART_ALWAYS, 5);
	if (!slot)
		return 0;
	counted = &slot->counts[place & (OUTCOME_COUNTS - 1)];
	count(counted, packets, bytes);
	return 0;
}

/* Count the outcome of packets for the interface of @key. */
static __always_inline void count_outcome(const struct run *run,
					  const struct flow_key *key,
					  enum outcome_kind outcome,
					  const struct wire_size *size)
{
	outcome_add(run->cpu_id, origin_of(key->netns, key->ifindex),
		    outcome_index(run->generation, key->flags & KEY_EGRESS,
				  outcome),
		    size->packets, size->bytes);
}

#endif
