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

static __always_inline __u64 hash_addr(const struct ip_addr *addr)
{
	return addr->lanes[0] * 0xbb67ae8584caa73bULL +
	       addr->lanes[1] * 0x3c6ef372fe94f82bULL;
}

static __always_inline __u64 hash_key(const struct flow_key *key,
				      const volatile __u64 *factors)
{
	const __u64 *lane = (const __u64 *)key;

	return hash_fold((lane[0] * factors[0] + lane[1] * factors[1]) +
			 (lane[2] * factors[2] + lane[3] * factors[3]) +
			 ((lane[4] * factors[4] + lane[5] * factors[5]) +
			  lane[6] * factors[6]));
}

#endif
