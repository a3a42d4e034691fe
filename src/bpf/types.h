/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Structs that the BPF programs and user space share: keys, values, counters, events. Every struct
 * has a fixed size and no implicit padding.
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
	KEY_AGAIN = 1 << 3, /* on the way out, and counted on the way in */
};

/* A VLAN id field holds the 12-bit id and this bit, so that id 0 is a tag too. */
enum { VLAN_PRESENT = 1 << 12, VLAN_ID_MASK = VLAN_PRESENT - 1 };

enum tunnel_type {
	TUNNEL_NONE,
	TUNNEL_VXLAN,
	TUNNEL_GENEVE,
	TUNNEL_GRE,
	TUNNEL_IPIP, /* any IP in IPv4 or IPv6 */
	TUNNEL_GTPU,
	TUNNEL_SRV6,   /* IP behind a list of segments, or Ethernet */
	TUNNEL_ERSPAN, /* mirrored Ethernet in GRE */
	TUNNEL_MAX,
};

_Static_assert(TUNNEL_MAX <= 8, "flow_key.tunnel has 3 bits");

/*
 * One flow at one observation point. For tunnelled packets, the inner tuple; a hash of the outer
 * addresses distinguishes tunnels.
 */
struct flow_key {
	struct ip_addr src;
	struct ip_addr dst;
	__u32 ifindex;	  /* never 0: an all-zero key is unused */
	__u16 src_port;	  /* host byte order */
	__u16 dst_port;	  /* ICMP: type << 8 | code */
	__u16 vlan;	  /* innermost tag; in a tunnel, inside */
	__u16 outer_vlan; /* outermost of several; in a tunnel, outside */
	__u16 netns;	  /* index given by user space; inodes need 32 bits */
	__u8 proto;
	__u8 flags : 4;	    /* enum flow_key_flag */
	__u8 tunnel : 3;    /* enum tunnel_type */
	__u8 rate_high : 1; /* see key_rate() */
	__u32 vni;	    /* VNI, GRE key, TEID or ERSPAN session */
	__u32 outer_hash;
};

/* The unit that is sampled; values as in enum netobs_sampling. */
enum sampling { SAMPLE_PACKETS, SAMPLE_FLOWS };

/* One packet or flow of @interval is sampled. */
struct rate {
	__u32 interval; /* 0: all are sampled */
	__u32 mode;	/* enum sampling */
};

/*
 * The rates that a context's programs use have numbers, which are part of the keys of
 * flows, so that counts of different rates stay apart. Number 0 means that all packets are
 * counted. A number is in bits that ids of VLANs and types of tunnels leave free.
 */
enum { RATES = 16, KEY_RATE_SHIFT = 13, KEY_RATE_LOW = 7 };

static inline __u32 key_rate(const struct flow_key *key)
{
	return key->vlan >> KEY_RATE_SHIFT | key->rate_high << 3;
}

/* The number of a sampling rate, as bits of the key's word 5. */
static inline __u64 key_rate_bits(__u32 rate)
{
	return (rate & KEY_RATE_LOW) << KEY_RATE_SHIFT | (__u64)(rate >> 3) << 63;
}

/*
 * Marks that any packet of the flow had. First the TCP header's flag bits (RFC 9293, 3.1), then
 * which ECN codepoints (RFC 3168) occurred, then which of FIN, SYN and RST, in the order of the
 * header, came together with ACK.
 */
enum flow_mark {
	MARK_TCP_MASK = 0xfff,
	MARK_ECN_SHIFT = 12,
	MARK_ECN_MASK = 0xf,
	MARK_FIN_ACK = 1 << 16,
	MARK_SYN_ACK = 1 << 17,
	MARK_RST_ACK = 1 << 18,
	MARK_NO_TCP_FLAGS = 1 << 19, /* of a header that was cut before them */
};

/*
 * Attributes of a packet beside its key and size, and of a flow. Those that are ATTR_FIELDs in
 * src/catalogue/fields.def are merged into the flow by the rules there.
 */
struct flow_attrs {
	__u32 marks;	  /* enum flow_mark, or-ed */
	__u32 flow_label; /* of IPv6, else 0 */
	__u8 dscp;
	__u8 ttl_min;
	__u8 ttl_max;
	__u8 has_mac;
};

/* The parts of a flow that every packet changes. */
struct flow_tally {
	__u64 packets; /* on the wire: GSO segments; 0 means "no entry" */
	__u64 bytes;   /* from the IP header on */
	__u64 l2_bytes; /* whole frames without FCS; 0 on links without a header */
	__u64 first_ns; /* CLOCK_BOOTTIME */
	__u64 last_ns;
	struct flow_attrs attrs;
	__u8 macs[12]; /* as in the frame: destination, source */
};

struct flow_entry {
	struct flow_key key;
	union {
		struct { /* if key.tunnel */
			__u16 outer_src_port;
			__u16 outer_dst_port;
			__u32 outer_check; /* with key.outer_hash, the key of the outer addresses */
		};
		__u64 hint; /* otherwise, in L1: see conn_hint() */
	};
	struct flow_tally tally;
};

_Static_assert(sizeof(struct flow_key) == CACHE_LINE - 8, "no padding");
_Static_assert(sizeof(struct flow_tally) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct flow_entry) == 2 * CACHE_LINE, "two of them");

/*
 * A page of an overflow table: flows of one CPU with hashes near each other. With the kernel's
 * header of an element it fills a 2 KiB object of the kernel's allocator.
 */
enum { OVERFLOW_FLOWS = 15 };

struct overflow_key {
	__u32 cpu;
	__u32 page; /* overflow_page_of() */
};

struct overflow_page {
	__u32 n; /* flows */
	__u32 tags[OVERFLOW_FLOWS];
	struct flow_entry entries[OVERFLOW_FLOWS];
};

_Static_assert(sizeof(struct overflow_page) + 64 <= 2048, "2 KiB with a head");

/*
 * The pages of a CPU form four levels of 1, 7, 24 and 96 parts. A flow goes into the first level
 * in which its page has room, so that few flows take few pages; in the last level it may go into
 * either of two pages.
 */
enum { OVERFLOW_LOOKS = 5, OVERFLOW_PARTS = 128 };

/*
 * The log: packets that missed L1, in the order in which a CPU saw them. A packet over
 * IPv4 outside tunnels takes one slot; everything else, and an entry that leaves L1,
 * takes two, which are a struct flow_entry. Both have words 4 and 5 of the key in the same place.
 */
struct log_slot {
	union {
		__u64 words[8];
		struct {
			__u32 src; /* IPv4, as in the header */
			__u32 dst;
			__u64 time_ns;
			__u32 bytes;
			__u32 l2_bytes;
			__u32 marks;
			__u32 hash;	 /* the upper half of hash_key() */
			__u64 key_ports; /* word 4: interface and ports */
			__u64 key_rest;	 /* word 5: also the flags below */
			__u16 packets;
			__u8 dscp;
			__u8 ttl;
			__u8 macs[12];
		};
	};
};

_Static_assert(sizeof(struct log_slot) == CACHE_LINE, "one cache line");

/*
 * Flags in word 5 of a record's first slot, where a VLAN id field has no bits of its own: clear
 * them before the word becomes part of a key.
 */
#define LOG_LONG (1ULL << 31)	    /* two slots */
#define LOG_GENERATION (1ULL << 30) /* the record's generation */
#define LOG_HAS_MAC (1ULL << 29)    /* one slot: as in struct flow_attrs */
#define LOG_FLAGS (LOG_LONG | LOG_GENERATION | LOG_HAS_MAC)

enum { BUCKET_SLOTS = 16 };

/*
 * A bucket of L1. All its tags are together on one cache line: looking up a flow that is not here
 * touches no entry.
 */
struct flow_bucket {
	__u32 tags[BUCKET_SLOTS];
	struct flow_entry entries[BUCKET_SLOTS];
};

/* A tag: 0 if the entry is free, else 24 bits of its flow's hash, and in the low 8 bits: */
enum { TAG_SHIFT = 8 }; /* misses that the entry survives */

/* Not a power of two: else the tags would share few of a cache's sets. */
_Static_assert(sizeof(struct flow_bucket) == 33 * CACHE_LINE, "no padding");

/* The addresses of tunnels, by two hashes of them. */
struct tunnel_key {
	__u32 hash;
	__u32 check;
};

struct tunnel_addrs {
	struct ip_addr src;
	struct ip_addr dst;
};

/* Reasons why a packet did not become a flow. */
enum unparsed_reason {
	UNPARSED_SHORT,	     /* the frame ends before its ports */
	UNPARSED_BAD_HEADER, /* a header contradicts itself */
	UNPARSED_TOO_DEEP, /* more nested headers, or longer ones, than the parser walks */
	UNPARSED_ARP,
	UNPARSED_NOT_IP,
	UNPARSED_PPP,  /* PPPoE discovery, and PPP that carries no IP */
	UNPARSED_WLAN, /* 802.11 without IP in clear; of files alone */
	UNPARSED_LINK, /* a link type that is not supported; of files alone */
	UNPARSED_MAX,
};

/* Reasons why a flow's packets could not be kept. */
enum lost_reason {
	LOST_TABLE_FULL, /* log full, and overflow table */
	LOST_NO_MEMORY,	 /* log full, and the kernel refused memory */
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
	struct count spilled; /* reached user space, through the overflow table */
};

/* Packets that a rule decided about, and the part of these that its sampling left out. */
struct rule_count {
	struct count decided;
	struct count sampled_out;
};

/* A window of packets, of which one is sampled; see sample.h. Zeroes: none has begun. */
struct sampler {
	__u32 left; /* packets until the window ends */
	__u32 pick; /* the next packet is sampled when so many are left */
};

/*
 * Where programs can interrupt one another on a CPU (PREEMPT_RT since Linux 6.18 need not serialise
 * bottom halves), a CPU has several lanes, each with a state and log of its own. Elsewhere it has one.
 */
enum { LANES_MAX = 4 };

/*
 * One per CPU and lane, written by one program at a time; user space writes the
 * generation, is_paused and log_tail only. A program is running while entered != exited.
 */
struct cpu_state {
	__u64 entered;
	__u64 exited;
	__u32 generation;
	__u32 is_paused; /* programs count nothing */
	__u64 tick; /* the coarse clock: a tick of the kernel, and its time, which is odd */
	__u64 tick_ns;
	__u32 busy;	  /* runs that claim the lane, if there are several */
	__u32 l1_bypass;  /* ticks for which packets bypass L1 */
	__u32 l1_misses;  /* misses in L1 in this tick */
	__u32 l1_entered; /* `entered` when this tick began, the lower half */
	__u64 nat_ns; /* time of the packet whose translation must be read; 0: none */
	struct counters counters[GENERATIONS];
	__u64 log_head; /* the next slot of the log to be written */
	__u64 log_limit; /* slots before this position were free when last checked */
	struct sampler samplers[RATES];
	__u64 reserved3[8 - (GENERATIONS * sizeof(struct counters) / 8 + 2 + RATES) % 8];
	__u64 log_tail; /* the next slot that user space will read */
	__u64 reserved4[7];
	__u64 scratch[320]; /* struct scratch of maps.h, for the programs alone */
};

_Static_assert(sizeof(struct cpu_state) % CACHE_LINE == 0, "no false sharing");

/*
 * Origins: interfaces with all incoming packets counted. An origin takes the slot of its hash; if
 * another origin has that, it goes into a hash table, and ORIGIN_MORE is set in the slot.
 */
enum { ORIGIN_SLOTS = 4096, ORIGIN_NETNS_STEP = 40503 };
#define ORIGIN_MORE (1ULL << 63)

static inline __u64 origin_of(__u16 netns, __u32 ifindex)
{
	return (__u64)netns << 32 | ifindex; /* never 0: no ifindex is */
}

static inline __u32 origin_slot(__u16 netns, __u32 ifindex)
{
	return (ifindex + (__u32)netns * ORIGIN_NETNS_STEP) & (ORIGIN_SLOTS - 1);
}

/* Outcomes of packets at an interface. The programs count the first ones. */
enum outcome_kind {
	OUTCOME_FILTERED,
	OUTCOME_SAMPLED_OUT,
	OUTCOME_UNPARSED,
	OUTCOME_LOST,
	OUTCOMES_COUNTED,
	OUTCOME_FLOW = OUTCOMES_COUNTED, /* in an entry that reached user space */
	OUTCOMES,
};

enum { OUTCOME_COUNTS = GENERATIONS * 2 * OUTCOMES_COUNTED };

static inline __u32 outcome_index(__u32 generation, __u32 is_egress,
				  enum outcome_kind outcome)
{
	return (generation * 2 + is_egress) * OUTCOMES_COUNTED + outcome;
}

/* Counters of a CPU for an interface. */
struct outcome_slot {
	__u64 origin; /* 0: free. With OUTCOME_LEAVING, programs do not find the slot any more */
	struct count counts[OUTCOME_COUNTS];
};

/*
 * Slots of a CPU: an interface may have one of OUTCOME_LOOKS slots. The last slot is shared by
 * interfaces that find none free.
 */
enum { OUTCOME_PLACES = 512, OUTCOME_SLOTS, OUTCOME_LOOKS = 8 };

/* Bits of a slot's origin, one per generation that was taken after the interface was gone. */
#define OUTCOME_LEAVING (1ULL << 62)

static inline __u32 outcome_place(__u64 origin, __u32 look)
{
	return (origin_slot(origin >> 32, (__u32)origin) + look) &
	       (OUTCOME_PLACES - 1);
}

/* A datagram's fragments, so that later ones get the first one's ports. */
struct fragment_key {
	struct ip_addr src;
	struct ip_addr dst;
	__u32 id;
	__u32 vni;	  /* tenants of a tunnel may use the same addresses */
	__u32 outer_hash; /* of the tunnel, mixed with VLANs, whose tenants may, too */
	__u16 netns;
	__u8 proto; /* IPv4 only: RFC 791 makes it part of the identity */
	__u8 tunnel;
};

struct fragment_ports {
	__u16 src_port;
	__u16 dst_port;
	__u8 proto;
	__u8 reserved[3];
};

/* The first header of a frame on a link. */
enum link_kind {
	LINK_ETHERNET,
	LINK_NONE, /* the network header: tun, WireGuard, ppp, ipip ... */
};

/*
 * Result of judge(): whether the packet is accepted, where the rule that decided this counts, and
 * at which of RATES the packet is sampled.
 */
enum {
	JUDGED_ACCEPT = 1 << 0,
	JUDGED_SLOT_SHIFT = 1,
	RULE_SLOTS = 256,
	JUDGED_RATE_SHIFT = 9,
};

static inline __u32 judged_slot(__u32 judgement)
{
	return judgement >> JUDGED_SLOT_SHIFT & (RULE_SLOTS - 1);
}

static inline __u32 judged_rate(__u32 judgement)
{
	return judgement >> JUDGED_RATE_SHIFT & (RATES - 1);
}

/*
 * Result of find_carried(): 0, or the offset of the first header that a tunnel carries in bits 0 to
 * 15, the kind of it from bit 16 on, and in the upper half where it ends.
 */
enum { CARRIED_ETHERNET = 1 << 16, CARRIED_IP = 2 << 16 };

/* The clock of the programs. */
enum clock_kind {
	CLOCK_HOST,   /* read once per timer tick, and for new entries */
	CLOCK_PACKET, /* replay: the file's, see packet_time() in run.h */
};

#endif
