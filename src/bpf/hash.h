/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hashes of 64-bit lanes: one independent multiplication each, summed, so that
 * they overlap in the pipeline; then folded, since only the high bits of a
 * product depend on all of a lane.
 *
 * Whoever knows the factors can make flows that collide. The programs' are
 * random therefore; user space gives them when it loads the programs.
 */
#ifndef NETOBS_BPF_HASH_H
#define NETOBS_BPF_HASH_H

#include "parse/cursor.h"

enum { HASH_LANES = sizeof(struct flow_key) / 8 };

static __always_inline __u64 hash_fold(__u64 sum)
{
	sum ^= sum >> 32;
	sum *= 0x9b05688c2b3e6c1fULL;
	return sum ^ sum >> 29;
}

/*
 * A lane's high bits reach only the high bits of a product, and the last octet of
 * an address is such a lane's highest byte: they are brought down first.
 */
static __always_inline __u64 hash_lane(__u64 lane, __u64 factor)
{
	return (lane ^ lane >> 32) * factor;
}

/* Not folded: of the addresses, the key's first four lanes. */
static __always_inline __u64 sum_addrs(const struct flow_key *key,
				       const volatile __u64 *factors)
{
	const __u64 *lane = (const __u64 *)key;

	return (hash_lane(lane[0], factors[0]) + hash_lane(lane[1], factors[1])) +
	       (hash_lane(lane[2], factors[2]) + hash_lane(lane[3], factors[3]));
}

static __always_inline __u64 hash_addrs(const struct flow_key *key,
					const volatile __u64 *factors)
{
	return hash_fold(sum_addrs(key, factors));
}

static __always_inline __u64 hash_key(const struct flow_key *key,
				      const volatile __u64 *factors)
{
	const __u64 *lane = (const __u64 *)key;

	return hash_fold(sum_addrs(key, factors) +
			 ((hash_lane(lane[4], factors[4]) +
			   hash_lane(lane[5], factors[5])) +
			  hash_lane(lane[6], factors[6])));
}

#endif
