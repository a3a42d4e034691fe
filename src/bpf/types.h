/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs and user space share: keys, values, counters, events.
 * Every struct has a fixed size and no implicit padding.
 */
#ifndef NETOBS_BPF_TYPES_H
#define NETOBS_BPF_TYPES_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

enum {
	GENERATIONS = 2,
	CACHE_LINE = 64,
	FLOW_MARKS = 16,
};

/* Network byte order; IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct ip_addr {
	union {
		__u8 bytes[16];
		__u32 words[4];
		__u64 lanes[2];
	};
};

enum flow_key_flag {
	KEY_EGRESS = 1 << 0,
	KEY_IPV6 = 1 << 1,	   /* the (inner) network header is IPv6 */
	KEY_NO_TRANSPORT = 1 << 2, /* later fragments of a first one not seen */
};

/* A VLAN id field holds the 12-bit id and this bit, so that id 0 is a tag too. */
enum { VLAN_PRESENT = 1 << 12, VLAN_ID_MASK = VLAN_PRESENT - 1 };

enum tunnel_type {
	TUNNEL_NONE,
	TUNNEL_VXLAN,
	TUNNEL_GENEVE,
	TUNNEL_GRE,
	TUNNEL_IPIP, /* any IP in IPv4 or IPv6 */
	TUNNEL_MAX,
};

/*
 * One flow at one observation point. Of a tunnelled packet it is the inner
 * tuple; the outer addresses are in the tally, and their hash in the key.
 */
struct flow_key {
	struct ip_addr src;
	struct ip_addr dst;
	__u32 ifindex;
	__u16 src_port;	  /* host byte order */
	__u16 dst_port;	  /* ICMP: type << 8 | code */
	__u16 vlan;	  /* innermost tag */
	__u16 outer_vlan; /* outermost tag when there are several */
	__u16 netns;	  /* index given by user space; inodes need 32 bits */
	__u8 proto;
	__u8 flags; /* enum flow_key_flag */
	__u32 vni;  /* VNI, or the GRE key */
	__u32 outer_hash;
	__u8 tunnel; /* enum tunnel_type */
	__u8 reserved[7];
};

/*
 * Marks: what any packet of the flow showed. The low 12 bits are the TCP
 * header's flag bits (RFC 9293, 3.1), the high 4 say which ECN codepoints
 * (RFC 3168) occurred.
 */
enum { MARK_TCP_MASK = 0xfff, MARK_ECN_SHIFT = 12 };

/* The first 64 bytes change with every packet, the rest when an entry is made. */
struct flow_tally {
	__u64 packets; /* on the wire: GSO segments; 0 means "no entry" */
	__u64 bytes;   /* from the IP header on */
	__u64 l2_bytes; /* whole frames without FCS; 0 on links without a header */
	__u64 first_ns; /* CLOCK_BOOTTIME */
	__u64 last_ns;
	__u16 marks;
	__u8 tos; /* of the latest packet */
	__u8 ttl_min;
	__u8 ttl_max;
	__u8 has_mac;
	__u16 outer_src_port;
	__u16 outer_dst_port;
	__u8 reserved[14];

	/*
	 * Marks that other CPUs' entries brought. A byte each: setting one is a
	 * plain store, which cannot undo what another CPU sets meanwhile.
	 */
	__u8 merged_marks[FLOW_MARKS];
	__u8 macs[12]; /* as in the frame: destination, source */
	__u8 reserved2[4];
	struct ip_addr outer_src; /* this and the ports: when key.tunnel */
	struct ip_addr outer_dst;
};

struct flow_entry {
	struct flow_key key;
	struct flow_tally tally;
};

_Static_assert(sizeof(struct flow_key) == CACHE_LINE, "key is one cache line");
_Static_assert(sizeof(struct flow_tally) == 2 * CACHE_LINE, "tally is two");
_Static_assert(sizeof(struct flow_entry) == 3 * CACHE_LINE, "no padding");

/* Why a packet did not become a flow. */
enum unparsed_reason {
	UNPARSED_SHORT,	     /* the frame ends inside a header */
	UNPARSED_BAD_HEADER, /* a header contradicts itself */
	UNPARSED_TOO_DEEP, /* more nested headers, or longer, than are walked */
	UNPARSED_ARP,
	UNPARSED_NOT_IP,
	UNPARSED_MAX,
};

/* Why a flow's packets could not be kept. */
enum lost_reason {
	LOST_TABLE_FULL, /* flow table at its cap, ring buffer full */
	LOST_NO_MEMORY,	 /* the kernel refused memory, ring buffer full */
	LOST_MAX,
};

struct count {
	__u64 packets;
	__u64 bytes;
};

/* seen = entries that reach user space + everything else here. */
struct counters {
	struct count seen;
	struct count filtered;
	struct count sampled_out;
	struct count unparsed[UNPARSED_MAX];
	struct count lost[LOST_MAX];
};

/*
 * One per CPU, written by that CPU's programs alone; user space writes the
 * generation only. A program is running while entered != exited.
 */
struct cpu_state {
	__u64 entered;
	__u64 exited;
	__u32 generation;
	__u32 reserved;
	__u64 tick; /* the coarse clock: what time it was when this tick was new */
	__u64 tick_ns;
	__u64 reserved2[3];
	struct counters counters[GENERATIONS];
	__u64 reserved3[8 - (GENERATIONS * sizeof(struct counters) / 8) % 8];
};

_Static_assert(sizeof(struct cpu_state) % CACHE_LINE == 0, "no false sharing");

/* The shared table of one generation. */
struct table_state {
	__u64 inserts;
	__u64 watermark; /* this many inserts wake user space up */
	__u32 announced;
	__u32 reserved[11];
};

_Static_assert(sizeof(struct table_state) == CACHE_LINE, "no false sharing");

enum event_type {
	EVENT_ENTRY,	 /* a flow entry that found no room in the table */
	EVENT_WATERMARK, /* the table of this generation fills up */
};

struct event {
	__u32 type;
	__u32 generation;
	struct flow_entry entry; /* EVENT_ENTRY only */
};

/* A datagram's fragments, so that later ones get the first one's ports. */
struct fragment_key {
	struct ip_addr src;
	struct ip_addr dst;
	__u32 id;
	__u32 vni; /* tenants of a tunnel may use the same addresses */
	__u32 outer_hash;
	__u16 netns;
	__u8 proto; /* IPv4 only: RFC 791 makes it part of the identity */
	__u8 reserved;
};

struct fragment_ports {
	__u16 src_port;
	__u16 dst_port;
	__u8 proto;
	__u8 reserved[3];
};

/* What starts a frame on a link. */
enum link_kind {
	LINK_ETHERNET,
	LINK_NONE, /* the network header: tun, WireGuard, ppp, ipip ... */
};

/* Where the programs take time from. */
enum clock_kind {
	CLOCK_COARSE,  /* read once per timer tick, and for new entries */
	CLOCK_PRECISE, /* exact for every packet */
	CLOCK_PACKET,  /* replay: the file's, see packet_time() in clock.h */
};

#endif
