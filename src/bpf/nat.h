/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address translation: the parts of a leaving packet's conntrack entry that the programs read, and
 * their reports. The entry has the addresses before and after translation, of both directions, from
 * the first packet on.
 */
#ifndef NETOBS_BPF_NAT_H
#define NETOBS_BPF_NAT_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

/* Directions of an entry, as enum ip_conntrack_dir: that of its first packet, and the reply's. */
enum { NAT_ORIGINAL, NAT_REPLY, NAT_DIRECTIONS };

enum {
	NAT_SEEN_TOTAL = 1 << 18, /* notes of all CPUs */
	NAT_SEEN_LEAST = 1 << 12, /* notes per CPU at least */
	NAT_SEEN_WAYS = 4,	  /* notes per bucket */
	NAT_RING_BYTES = 1 << 20,
	NAT_TUPLE_WORDS = 10,
};

/*
 * Offsets in structs of the kernel, in bytes. They differ between kernels, so user space takes them
 * from the kernel's type information.
 */
struct nat_layout {
	__u32 skb_nfct;		      /* in struct sk_buff */
	__u32 tuples[NAT_DIRECTIONS]; /* in struct nf_conn */
	__u32 zone;
	__u32 has_zone; /* 0: the kernel has no zones */
	__u32 has_cast; /* programs may cast their context to struct sk_buff */
	__u32 secret[NAT_TUPLE_WORDS]; /* for a hash of tuples */
	__u32 seen_buckets; /* per CPU and generation, a power of two */
};

/*
 * Notes of the translations of flows, by hash: [generation][CPU], nat_layout.seen_buckets of them.
 * The upper half of a note has bits of the flow's hash, the lower half has bits of a hash of its
 * entry, or NAT_IS_PLAIN.
 */
struct nat_notes {
	__u64 of[NAT_SEEN_WAYS];
};

/* Has the layout of the kernel's struct nf_conntrack_tuple, which user space checks. */
struct nat_tuple {
	__u32 src[4];	/* network byte order; IPv4: the first word */
	__u16 src_port; /* network byte order; ICMP: the identifier */
	__u16 family;	/* AF_INET, AF_INET6 */
	__u32 dst[4];
	__u16 dst_port; /* network byte order; ICMP: type, then code */
	__u8 proto;
	__u8 dir;
};

_Static_assert(sizeof(struct nat_tuple) == NAT_TUPLE_WORDS * sizeof(__u32),
	       "as in the kernel");

/* The packets of a flow that leaves have another entry than was reported. */
struct nat_event {
	__u64 time_ns; /* as in entries of flows */
	struct nat_tuple tuples[NAT_DIRECTIONS];
	__u32 ifindex;	    /* by which the packet leaves */
	__u32 from_ifindex; /* by which it came; 0: this host made it */
	__u16 netns;	    /* index, as in keys */
	__u16 zone;
	__u8 dir;	  /* direction of the packet in the entry */
	__u8 is_answered; /* a packet of the reply direction was seen, maybe this one */
	__u8 reserved[2];
};

_Static_assert(sizeof(struct nat_event) == 104, "no padding");

/* One per CPU. */
struct nat_counters {
	__u64 reported;
	__u64 lost; /* the ring was full; a later packet of the flow tries again */
	__u64 reserved[6];
};

static inline __u32 nat_seen_buckets(__u32 n_cpus)
{
	__u32 slots = NAT_SEEN_TOTAL;

	while (slots > NAT_SEEN_LEAST && slots * n_cpus > NAT_SEEN_TOTAL)
		slots /= 2;
	return slots / NAT_SEEN_WAYS;
}

#endif
