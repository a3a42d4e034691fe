/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets that the kernel drops: structs that the programs and user space share. */
#ifndef NETOBS_BPF_DROPS_H
#define NETOBS_BPF_DROPS_H

#include "bpf/types.h"

enum {
	DROPS_MAX = 1 << 15, /* entries of flows, of both generations */
	DROPS_REST_MAX = 1 << 12, /* entries without addresses, if there is no room */
	DROPS_SHARES = 256,	  /* shares of DROPS_MAX, see drops.bpf.c */
	DROP_FUNCTIONS_MAX = 1 << 12,
	DROP_FUNCTION_LEN = 96,
};

/* Valid members of a key. */
enum drop_has {
	DROP_HAS_ADDRS = 1 << 0,
	DROP_HAS_PORTS = 1 << 1,
	DROP_HAS_REASON = 1 << 2, /* Linux 5.17 */
	DROP_IS_REST = 1 << 3,	  /* without addresses and ports: no room */
	DROP_HAS_ORIG = 1 << 4,
	DROP_HAS_ORIG_PORTS = 1 << 5,
};

/* Key of drops for one reason, by one call in the kernel. */
struct drop_key {
	struct ip_addr src, dst;
	__u64 location; /* the address after the call: see drop_functions */
	__u32 reason;	/* enum skb_drop_reason of this kernel */
	__u32 netns;	/* inode; 0: not known */
	__u32 ifindex;	/* where the packet was; 0: none, or unknown */
	__u16 src_port, dst_port;
	__u16 ethertype; /* 0: it had no network header yet */
	__u8 proto;
	__u8 has;	 /* enum drop_has */
	__u8 unparsed;	 /* 1 + enum unparsed_reason; 0: it was parsed */
	__u8 generation; /* generation in which it was counted */
	__u8 reserved[2];
	/* Of NAT: with which packets of its connection came into the namespace. */
	struct ip_addr orig_src, orig_dst;
	__u16 orig_src_port, orig_dst_port;
	__u32 reserved2;
};

_Static_assert(sizeof(struct drop_key) == 104, "no padding: it is a key");

struct drop_value {
	__u64 packets; /* on the wire */
	__u64 bytes; /* from the IP header on; of unparsed packets, all bytes */
	__u64 last_ns; /* CLOCK_BOOTTIME */
	char interface[16];
};

/* Number of entries in a generation. */
struct drop_used {
	__u32 all;
	__u32 of_share[DROPS_SHARES];
};

/* Shared by all CPUs. User space sets the generation, and clears what it has read of the other. */
struct drop_state {
	__u32 generation;
	__u32 reserved;
	struct count lost[GENERATIONS]; /* drops that found no room in any table */
	__u64 others; /* buffers that are no packets: of netlink, Unix sockets */
	__u64 nested; /* drops that the second program handled; see drops.bpf.c */
	__u64 missed; /* drops while both programs were busy; COMPAT(<6.1) */
	struct drop_used used[GENERATIONS];
};

#endif
