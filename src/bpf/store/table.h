/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shared table: buckets of entries, in an array that all CPUs write to
 * without a lock. A flow belongs into one of two buckets, which fills the table
 * to nine tenths before a flow finds both of them full. A bucket's tags, on one
 * cache line, tell which entry may be the flow's.
 *
 * A tag is 0 while its entry is free. To take it, a CPU adds 1; if that makes
 * it 1 the entry is its own, else it takes the 1 back and goes on: of two that
 * come at the same moment both may go on, never both stay. COMPAT(<5.12): there
 * is no compare-and-exchange, nor an addition that returns something. The owner
 * writes the key, then adds the hash bits, from where on others find the entry.
 * Counts are added by all, the owner too; they start from the zero that user
 * space left. Nothing is removed but by user space, from a table at rest.
 *
 * Two CPUs may enter the same flow at the same moment, which makes two entries;
 * user space merges them.
 *
 * Pure: the same header builds for the host, where threads drive it.
 */
#ifndef NETOBS_BPF_STORE_TABLE_H
#define NETOBS_BPF_STORE_TABLE_H

#include "bpf/parse/headers.h"
#include "attrs.h"
#include "hash.h"
#include "marks.h"

#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

enum { BUCKET_FULL = -1 };

/* Of an entry's packets: at 100 million packets a second, for two days. */
enum { PACKETS_BITS = 64 - LABEL_BITS };

/* 24 bits that have little to do with those that choose the bucket; never 0. */
static __always_inline __u32 tag_of(__u64 hash)
{
	return hash * 0xd6e8feb86659fd93ULL >> 40 | 1;
}

/* A number below @n from 32 bits of a hash, without a division. */
static __always_inline __u32 scale(__u32 hash, __u32 n)
{
	return (__u64)hash * n >> 32;
}

/* A flow has two entries of a bucket of L1: this one and the next. */
static __always_inline __u32 l1_way(__u64 hash)
{
	return hash & (BUCKET_SLOTS - 2);
}

static __always_inline bool has_key(const struct flow_entry *entry,
				    const struct flow_key *key)
{
	const __u64 *a = (const __u64 *)&entry->key, *b = (const __u64 *)key;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) |
		 (a[4] ^ b[4]) | (a[5] ^ b[5]) | (a[6] ^ b[6]));
}

/*
 * The tags are looked at two at a time, without a branch: the verifier walks
 * every way through a loop, and processors guess wrong which tag it will be.
 * What is found is a set: for each of the 8 pairs bit k for the first and bit
 * 32 + k for the second tag. A tag after one that matches may be in it wrongly.
 */
enum { PAIRS = BUCKET_SLOTS / 2 };

#define BOTH(word) ((__u64)(word) << 32 | (word))

/* The tags that are @want, but for the bits below @unit. */
static __always_inline __u64 match_tags(const struct flow_bucket *bucket,
					__u64 want, __u64 unit)
{
	const __u64 *pairs = (const __u64 *)bucket->tags;
	__u64 found = 0;

	for (int k = 0; k < PAIRS; k++) {
		__u64 differ = READ_ONCE(pairs[k]) ^ want;

		found |= ((differ - unit) & ~differ & BOTH(1U << 31)) >> (31 - k);
	}
	return found;
}

static __always_inline __u64 match_tag(const struct flow_bucket *bucket, __u32 tag)
{
	return match_tags(bucket, BOTH(tag << TAG_SHIFT), BOTH(1U << TAG_SHIFT));
}

static __always_inline __u64 match_free(const struct flow_bucket *bucket)
{
	return match_tags(bucket, 0, BOTH(1U));
}

/* 1 if any bit is set; the compiler is not to make a branch of it. */
static __always_inline __u64 is_any_set(__u64 bits)
{
	asm volatile("" : "+r"(bits));
	return -bits >> 63;
}

/* The index of the first in a set that is not empty. */
static __always_inline __u32 found_first(__u64 found)
{
	__u64 pairs = (found | found >> 32) & 0xff, pair, index;

	pair = pairs & -pairs;
	index = is_any_set(pair & 0xf0) << 3 | is_any_set(pair & 0xcc) << 2 |
		is_any_set(pair & 0xaa) << 1 | is_any_set(found & pair);
	/* The compiler knows the range; COMPAT(<5.11): the verifier does not. */
	asm volatile("" : "+r"(index));
	return (index ^ 1) & (BUCKET_SLOTS - 1);
}

static __always_inline __u64 found_without(__u64 found, __u32 index)
{
	return found & ~(1ULL << ((index & 1) << 5 | index >> 1));
}

static __always_inline int found_count(__u64 found)
{
	return __builtin_popcountll(found & 0xff000000ffULL);
}

/*
 * Where in a bucket a flow is, unless another CPU took the place first. Its tag and its
 * entry there are looked at together, so that a cache loads both at a time.
 */
static __always_inline __u32 home_of(__u32 tag)
{
	return tag >> 1 & (BUCKET_SLOTS - 1);
}

static __always_inline bool has_tag(const struct flow_bucket *bucket,
				    __u32 index, __u32 tag)
{
	return READ_ONCE(bucket->tags[index]) >> TAG_SHIFT == tag;
}

/* NULL: not there, unless two others with the same tag come first. */
static __always_inline struct flow_entry *
bucket_find(struct flow_bucket *bucket, const struct flow_key *key, __u32 tag)
{
	struct flow_entry *entry = &bucket->entries[home_of(tag)];
	__u64 found;

	if (has_tag(bucket, home_of(tag), tag) && has_key(entry, key))
		return entry;
	found = match_tag(bucket, tag);
	if (!found)
		return NULL;
	entry = &bucket->entries[found_first(found)];
	if (has_key(entry, key))
		return entry;
	found = found_without(found, found_first(found));
	if (!found)
		return NULL;
	entry = &bucket->entries[found_first(found)];
	return has_key(entry, key) ? entry : NULL;
}

/* Take a free entry: its index, or BUCKET_FULL; also after an unlucky race. */
static __always_inline int bucket_claim(struct flow_bucket *bucket, __u32 home)
{
	__u64 found = match_free(bucket);

	for (int attempt = 0; attempt < 2 && found; attempt++) {
		__u32 i = READ_ONCE(bucket->tags[home]) ? found_first(found) :
							  home;

		__sync_fetch_and_add(&bucket->tags[i], 1);
		if (READ_ONCE(bucket->tags[i]) == 1)
			return i;
		__sync_fetch_and_add(&bucket->tags[i], -1);
		found = found_without(found, i);
	}
	return BUCKET_FULL;
}

/*
 * What does not change any more, and where to start from with the rest; but nothing is
 * stored to what others add to, since on arm64 that store may become visible after the tag.
 */
static __always_inline void shared_start(struct flow_entry *to,
					 const struct flow_entry *from)
{
	enum {
		BEHIND_MARKS = offsetof(struct flow_tally, mark_counts) +
			       sizeof(to->tally.mark_counts),
	};

	to->key = from->key;
	to->outer_src_port = from->outer_src_port;
	to->outer_dst_port = from->outer_dst_port;
	to->outer_check = from->outer_check;
	to->tally.first_ns = from->tally.first_ns;
	to->tally.last_ns = from->tally.last_ns;
	__builtin_memcpy((__u8 *)&to->tally + BEHIND_MARKS,
			 (const __u8 *)&from->tally + BEHIND_MARKS,
			 sizeof(to->tally) - BEHIND_MARKS);
	if (from->tally.attrs.flow_label)
		__sync_fetch_and_add(&to->tally.packets,
				     (__u64)from->tally.attrs.flow_label
					     << PACKETS_BITS);
}

/*
 * Add the counts and attributes of one packet, or of many. Others may do the same to @to
 * at the same time.
 */
static __always_inline void shared_add(struct flow_tally *to,
				       const struct flow_tally *what)
{
	bool is_later;
	__u64 news = marks_spread(what->attrs.marks) &
		     ~marks_present(READ_ONCE(to->mark_counts));

	__sync_fetch_and_add(&to->packets, what->packets);
	__sync_fetch_and_add(&to->bytes, what->bytes);
	__sync_fetch_and_add(&to->l2_bytes, what->l2_bytes);
	if (news)
		__sync_fetch_and_add(&to->mark_counts, news);
	is_later = what->last_ns >= READ_ONCE(to->last_ns);
	if (is_later)
		to->last_ns = what->last_ns;
	if (what->first_ns < to->first_ns)
		to->first_ns = what->first_ns;
	attrs_merge(&to->attrs, &what->attrs, false, is_later);
}

/* Make an entry of a table at rest like those of L1. */
static __always_inline void shared_finish(struct flow_tally *tally)
{
	__u32 marks = marks_gather(tally->mark_counts);

	tally->attrs.marks = marks;
	tally->attrs.flow_label = tally->packets >> PACKETS_BITS;
	tally->packets &= (1ULL << PACKETS_BITS) - 1;
}

/* The emptier of the two, once the first is half full. */
static __always_inline bool prefer_second(const struct flow_bucket *first,
					  const struct flow_bucket *second)
{
	int in_first = found_count(match_free(first));

	return in_first < BUCKET_SLOTS / 2 &&
	       found_count(match_free(second)) > in_first;
}

/* Enter what is not there, with counts of zero. NULL: the bucket is full. */
static __always_inline struct flow_entry *
bucket_insert(struct flow_bucket *bucket, const struct flow_entry *entry,
	      __u32 tag)
{
	int slot = bucket_claim(bucket, home_of(tag));

	if (slot < 0)
		return NULL;
	slot &= BUCKET_SLOTS - 1; /* for the verifier */
	shared_start(&bucket->entries[slot], entry);
	__sync_fetch_and_add(&bucket->tags[slot], tag << TAG_SHIFT);
	return &bucket->entries[slot];
}

#endif
