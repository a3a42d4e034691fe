/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hash of 64-bit lanes: one independent multiplication each, summed, so that
 * they overlap in the pipeline; then folded, since only the high bits of a
 * product depend on all of a lane. Not keyed: an adversary can make two flows
 * share a slot, which costs time (the shared table takes over), never counts.
 *
 * The factors are odd, with well mixed bits: SHA-512's initial values, mostly.
 */
#ifndef NETOBS_BPF_HASH_H
#define NETOBS_BPF_HASH_H

#include "parse/cursor.h"

static __always_inline __u64 hash_fold(__u64 sum)
{
	sum ^= sum >> 32;
	sum *= 0x9b05688c2b3e6c1fULL;
	return sum ^ sum >> 29;
}

static __always_inline __u64 hash_addr(const struct ip_addr *addr)
{
	return addr->lanes[0] * 0xbb67ae8584caa73bULL +
	       addr->lanes[1] * 0x3c6ef372fe94f82bULL;
}

static __always_inline __u64 hash_key(const struct flow_key *key)
{
	const __u64 *lane = (const __u64 *)key;

	return hash_fold(lane[0] * 0x6a09e667f3bcc909ULL +
			 lane[1] * 0xbb67ae8584caa73bULL +
			 lane[2] * 0x3c6ef372fe94f82bULL +
			 lane[3] * 0xa54ff53a5f1d36f1ULL +
			 lane[4] * 0x510e527fade682d1ULL +
			 lane[5] * 0x9b05688c2b3e6c1fULL +
			 lane[6] * 0x1f83d9abfb41bd6bULL +
			 lane[7] * 0x5be0cd19137e2179ULL);
}

#endif
