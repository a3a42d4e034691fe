/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choice of sampled packets or flows. Pure: the same header builds for the host.
 *
 * Packets: of each N on a CPU in a row, one at random ("random n-out-of-N": RFC 5475,
 * 5.2.1), so that each is sampled with a probability of 1/N, and totals vary less than with
 * independent draws. Packets are packets on the wire: of a buffer that GSO will segment, some of
 * the segments may be sampled.
 *
 * Flows: by a hash with a key that is the same everywhere, so that a flow is sampled on
 * all hosts or on none, in both directions alike. Flows of 1:200 are among those of 1:100.
 */
#ifndef NETOBS_BPF_SAMPLE_H
#define NETOBS_BPF_SAMPLE_H

#include "bpf/parse/packet.h"
#include "bpf/store/hash.h"

/*
 * @return the number of the next @packets that are sampled. @random: below @interval, and not
 * predictable; it is used if they end a window.
 */
static __always_inline __u64 sampler_take(struct sampler *sampler, __u32 interval,
					  __u32 packets, __u32 random)
{
	__u32 left = sampler->left;
	__u64 sampled;

	if (packets < left) {
		sampler->left = left - packets;
		return sampler->pick <= left && sampler->pick > left - packets;
	}
	sampled = left && sampler->pick <= left;
	packets -= left;
	sampled += packets / interval; /* whole windows */
	sampler->left = interval - packets % interval;
	sampler->pick = 1 + random;
	return sampled + (sampler->pick > sampler->left);
}

/*
 * Hash an address, as little-endian words, and a port. The key is the initial value of SHA-256
 * (FIPS 180-4, 5.3.3).
 */
static __always_inline __u64 sample_hash_end(const struct ip_addr *addr,
					     __u32 port, __u32 proto)
{
	const __u32 *words = addr->words;

	return hash_finish(
		(__u64)(words[0] + 0x6a09e667) * (words[1] + 0xbb67ae85) +
		(__u64)(words[2] + 0x3c6ef372) * (words[3] + 0xa54ff53a) +
		(__u64)(port + 0x510e527f) * (proto + 0x9b05688c));
}

/*
 * Hash the (inner) addresses, ports and protocol. The fields that ICMP has instead of ports are
 * left out: a request differs from its reply in them.
 */
static __always_inline __u64 sample_hash(const struct flow_key *key)
{
	bool has_ports = key->proto != IP_PROTO_ICMP &&
			 key->proto != IP_PROTO_ICMPV6;
	__u32 src_port = has_ports ? key->src_port : 0;
	__u32 dst_port = has_ports ? key->dst_port : 0;

	return hash_finish(sample_hash_end(&key->src, src_port, key->proto) +
			   sample_hash_end(&key->dst, dst_port, key->proto));
}

/*
 * @return whether @hash is below 2^64 / @interval. With the upper half of the hash alone,
 * a large interval would have up to twice its share.
 */
static __always_inline bool is_hash_sampled(__u64 hash, __u32 interval)
{
	__u64 lower = (hash & 0xffffffff) * interval >> 32;

	return !(((hash >> 32) * interval + lower) >> 32);
}

static __always_inline bool is_flow_sampled(const struct flow_key *key,
					    __u32 interval)
{
	return is_hash_sampled(sample_hash(key), interval);
}

#endif
