/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The overflow tables, for entries while the log of a CPU is full because user space is late: a
 * hash table of the kernel for each generation, which takes memory only for the pages that it has.
 * Each CPU has its own pages there, so no page is changed by two CPUs.
 */
#ifndef NETOBS_BPF_STORE_OVERFLOW_H
#define NETOBS_BPF_STORE_OVERFLOW_H

#include "run.h"
#include "tally.h"
#include "bpf/apart.h"

enum { TABLE_IS_FULL = -7 }; /* -E2BIG */

static __always_inline __u32 overflow_page_of(__u32 level, __u64 hash)
{
	const __u32 first = level > 2 ? 32 : level > 1 ? 8 : level;
	const __u32 parts = level > 2 ? 96 : level > 1 ? 24 : level ? 7 : 1;
	const __u32 bits = level > 3 ? hash : hash >> 32;

	return first * config_overflow_part +
	       scale_hash(bits, parts * config_overflow_part);
}

/* Make a page with @entry as its first flow. */
static __always_inline int overflow_start(void *map,
					  const struct overflow_key *key,
					  const struct flow_entry *entry,
					  __u32 tag, struct overflow_page *page)
{
	page->n = 1;
	page->tags[0] = tag;
	page->entries[0] = *entry;
	/* COMPAT(<5.16): the upper half of the result of the helper is undefined. */
	return (int)bpf_map_update_elem(map, key, page, BPF_NOEXIST);
}

static __always_inline bool overflow_is(const struct flow_entry *known,
					const struct flow_entry *entry)
{
	const __u64 *ours = (const __u64 *)&known->key;
	const __u64 *theirs = (const __u64 *)&entry->key;
	__u64 differ = 0;

	/* No branch for each word: the verifier would walk both ways of it. */
	for (__u32 i = 0; i < sizeof(known->key) / sizeof(*ours); i++)
		differ |= ours[i] ^ theirs[i];
	return !differ;
}

/*
 * Find the flow's entry in its page, or else the first free one. The result goes through memory, so
 * that the verifier does not know it, and walks the code behind the loop once.
 */
static __always_inline void overflow_find(const struct overflow_page *page,
					  const struct flow_entry *entry,
					  __u32 tag, volatile __u32 *ret_place)
{
	__u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < OVERFLOW_FLOWS && i < page->n; i++)
		if (page->tags[i] == tag && overflow_is(&page->entries[i], entry))
			break;
	*ret_place = i;
}

/* False: the page has no room for a flow that it does not have. */
static __always_inline bool overflow_enter(struct overflow_page *page,
					   const struct flow_entry *entry,
					   __u32 tag, volatile __u32 *place)
{
	__u32 i;

	overflow_find(page, entry, tag, place);
	i = *place;
	if (i >= OVERFLOW_FLOWS)
		return false;
	if (i < page->n) {
		tally_add(&page->entries[i].tally, &entry->tally);
		return true;
	}
	page->entries[i] = *entry;
	page->tags[i] = tag;
	page->n = i + 1;
	return true;
}

static __always_inline int overflow_put(void *map, __u32 cpu_id,
					const struct flow_entry *entry,
					struct overflow_page *empty)
{
	const __u64 hash = hash_key(&entry->key, &config_secret);

#pragma clang loop unroll(disable)
	for (__u32 level = 0; level < OVERFLOW_LOOKS; level++) {
		struct overflow_key key = {
			.cpu = cpu_id,
			.page = overflow_page_of(level, hash),
		};
		struct overflow_page *page = bpf_map_lookup_elem(map, &key);
		int err;

		if (page && overflow_enter(page, entry, hash, &empty->n))
			return 0;
		if (page)
			continue;
		err = overflow_start(map, &key, entry, hash, empty);
		if (err != TABLE_IS_FULL) /* another page may have room */
			return err;
	}
	return TABLE_IS_FULL;
}

/*
 * Add the entry in the CPU's scratch. Rare, so it is kept out of the way of other packets, and
 * global, so that the verifier walks it once and not for each call. Not 0: the entry is lost, and
 * the caller counts it for its interface.
 */
__noinline int overflow_add(__u32 generation, __u32 cpu_id)
{
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);
	void *map = bpf_map_lookup_elem(&overflows, &generation);
	const struct flow_entry *entry;
	struct counters *counters;
	struct scratch *scratch;
	struct count *fate;
	int err = -1;

	VERIFIED_APART(APART_ALWAYS, 2);
	if (!cpu || generation >= GENERATIONS)
		return 0; /* never, but the verifier does not know that */
	counters = &cpu->counters[generation];
	fate = &counters->lost[LOST_NO_MEMORY];
	scratch = (struct scratch *)cpu->scratch;
	entry = &scratch->entry;
	if (map) {
		err = overflow_put(map, cpu_id, entry, &scratch->page);
		if (!err)
			fate = &counters->spilled;
		else if (err == TABLE_IS_FULL)
			fate = &counters->lost[LOST_TABLE_FULL];
	}
	count(fate, entry->tally.packets, entry->tally.bytes);
	return !!err;
}

#endif
