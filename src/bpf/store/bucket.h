/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buckets of flow entries: L1 consists of them. A flow has two places in its bucket, and
 * the tags of all places are on one cache line, apart from the entries.
 *
 * Pure: the same header builds for the host.
 */
#ifndef NETOBS_BPF_STORE_BUCKET_H
#define NETOBS_BPF_STORE_BUCKET_H

#include "bpf/types.h"

#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

/* 24 bits, none of which chooses the place; never 0. */
static __always_inline __u32 tag_of(__u64 hash)
{
	return (__u32)hash >> TAG_SHIFT | 1;
}

/* A number below @n from 32 bits of a hash, without a division. */
static __always_inline __u32 scale(__u32 hash, __u32 n)
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
