/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hashes of flow keys, and the slots in tables that they choose; hash_words.h computes them. */
#ifndef NETOBS_BPF_STORE_HASH_H
#define NETOBS_BPF_STORE_HASH_H

#include "bpf/once.h"
#include "bpf/parse/cursor.h"
#include "hash_words.h"

enum {
	HASH_FLOW_WORDS = sizeof(struct flow_key) / sizeof(__u32),
	HASH_ADDR_WORDS = 2 * sizeof(struct ip_addr) / sizeof(__u32),
};

/* Random, known to this host alone. No two uses share a part of it. */
struct hash_secret {
	__u32 flow[HASH_FLOW_WORDS];
	__u32 outer[HASH_ADDR_WORDS]; /* the addresses of tunnels, twice */
	__u32 outer_check[HASH_ADDR_WORDS];
	__u32 connection[HASH_FLOW_WORDS];
};

/* Sum of two addresses' words, for hash_finish(). */
static __always_inline __u64 sum_addrs(const __u32 *words,
				       const volatile __u32 *secret)
{
	return (hash_pair(words, secret) + hash_pair(words + 2, secret + 2)) +
	       (hash_pair(words + 4, secret + 4) +
		hash_pair(words + 6, secret + 6));
}

/* @secret: a part of it that is for addresses. */
static __always_inline __u32 hash_addrs(const struct flow_key *key,
					const volatile __u32 *secret)
{
	return hash_finish(sum_addrs(key->src.words, secret)) >> 32;
}

static __always_inline __u64 hash_all_words(
	const struct flow_key *key, const volatile struct hash_secret *secret)
{
	const volatile __u32 *part = secret->flow;
	const __u32 *words = (const __u32 *)key;

	return hash_finish(sum_addrs(words, part) +
			   ((hash_pair(words + 8, part + 8) +
			     hash_pair(words + 10, part + 10)) +
			    hash_pair(words + 12, part + 12)));
}

/*
 * Outside tunnels the last two words are the same in every key, and of IPv4 addresses all
 * words but one. The words that say which kind of key it is are in all sums.
 */
static __always_inline __u64 hash_key(const struct flow_key *key,
				      const volatile struct hash_secret *secret)
{
	const volatile __u32 *part = secret->flow;
	const __u32 *words = (const __u32 *)key;
	__u64 rest;

	if (key->tunnel)
		return hash_all_words(key, secret);
	rest = hash_pair(words + 8, part + 8) + hash_pair(words + 10, part + 10);
	if (key->flags & KEY_IPV6)
		return hash_finish(sum_addrs(words, part) + rest);
	return hash_finish(hash_words(words[3], words[7], part) + rest);
}

/* ---- Places in tables ------------------------------------------------------------ */

/*
 * L1 consists of buckets of flow entries. A flow has two places in its bucket, and the tags
 * of all places are on one cache line, apart from the entries.
 */

/* 24 bits, none of which chooses the place; never 0. */
static __always_inline __u32 tag_of(__u64 hash)
{
	return (__u32)hash >> TAG_SHIFT | 1;
}

/* A number below @n from 32 bits of a hash, without a division. */
static __always_inline __u32 scale_hash(__u32 hash, __u32 n)
{
	return (__u64)hash * n >> 32;
}

/* The first of a flow's two places; the other one is next to it. */
static __always_inline __u32 l1_way(__u64 hash)
{
	return hash & (BUCKET_SLOTS - 2);
}

static __always_inline bool has_tag(const struct flow_bucket *bucket,
				    __u32 index, __u32 tag)
{
	return bucket->tags[index] >> TAG_SHIFT == tag;
}

static __always_inline bool has_key(const struct flow_entry *entry,
				    const struct flow_key *key)
{
	const __u64 *a = (const __u64 *)&entry->key, *b = (const __u64 *)key;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) |
		 (a[4] ^ b[4]) | (a[5] ^ b[5]) | (a[6] ^ b[6]));
}

#endif
