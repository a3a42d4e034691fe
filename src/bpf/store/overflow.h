/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where entries go while the log of a CPU is full, because user space is late: a hash
 * table of the kernel for each generation, which takes memory only for the entries that
 * it has. Each CPU has its own entries there, so nothing is added to by two of them.
 */
#ifndef NETOBS_BPF_STORE_OVERFLOW_H
#define NETOBS_BPF_STORE_OVERFLOW_H

#include "counters.h"
#include "tally.h"

enum { TABLE_IS_FULL = -7 }; /* -E2BIG */

/* COMPAT(<5.16): the upper half of what the helper returns is not to be relied on. */
static __always_inline int overflow_enter(void *map,
					  const struct overflow_key *key,
					  const struct flow_entry *entry)
{
	struct overflow_value *known = bpf_map_lookup_elem(map, key);

	if (!known)
		return (int)bpf_map_update_elem(map, key, &entry->outer_src_port,
						BPF_NOEXIST);
	tally_add(&known->tally, &entry->tally);
	return 0;
}

/*
 * Rare, so it is kept out of the way of other packets: a function that is called, with
 * what it needs of struct run, which would have to be in memory otherwise.
 */
static __noinline int overflow_add(struct scratch *scratch,
				   const struct flow_entry *entry,
				   struct counters *counters, __u32 generation,
				   __u32 cpu_id)
{
	void *map = bpf_map_lookup_elem(&overflows, &generation);
	struct overflow_key *key = &scratch->overflow_key;
	struct count *fate = &counters->lost[LOST_NO_MEMORY];
	int err;

	if (map) {
		key->flow = entry->key;
		key->cpu = cpu_id;
		err = overflow_enter(map, key, entry);
		if (!err)
			fate = &counters->spilled;
		else if (err == TABLE_IS_FULL)
			fate = &counters->lost[LOST_TABLE_FULL];
	}
	count(fate, entry->tally.packets, entry->tally.bytes);
	return 0;
}

#endif
