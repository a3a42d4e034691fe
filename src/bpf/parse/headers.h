/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Wire formats and protocol numbers, for BPF and for host builds of the parser. */
#ifndef NETOBS_BPF_PARSE_HEADERS_H
#define NETOBS_BPF_PARSE_HEADERS_H

#include "bpf/types.h"
#include <bpf/bpf_endian.h>

/*
 * Headers start at any byte. BPF programs are only loaded where loads of any
 * alignment work; a C compiler for a host has to know.
 */
#ifdef __bpf__
#define WIRE
#else
#define WIRE __attribute__((packed))
#endif

/* IANA "IEEE 802 Numbers": ethertypes. BTF carries no macros. */
enum ethertype {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_TEB = 0x6558, /* transparent Ethernet bridging, RFC 1701 */
	ETHERTYPE_8021Q = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_MPLS = 0x8847,
	ETHERTYPE_MPLS_MULTICAST = 0x8848,
	ETHERTYPE_PPPOE_DISCOVERY = 0x8863,
	ETHERTYPE_PPPOE_SESSION = 0x8864,
	ETHERTYPE_8021AD = 0x88a8,
	ETHERTYPE_ERSPAN = 0x88be, /* types I and II */
	ETHERTYPE_ERSPAN3 = 0x22eb,
	ETHERTYPE_QINQ = 0x9100, /* before 802.1ad */
};

/* RFC 1661, 2: protocol field. */
enum ppp_protocol { PPP_PROTO_IPV4 = 0x0021, PPP_PROTO_IPV6 = 0x0057 };

/* IANA "Protocol Numbers", those that either header file lacks. */
enum ip_protocol {
	IP_PROTO_HOPOPTS = 0,
	IP_PROTO_ICMP = 1,
	IP_PROTO_IPIP = 4,
	IP_PROTO_TCP = 6,
	IP_PROTO_UDP = 17,
	IP_PROTO_DCCP = 33,
	IP_PROTO_IPV6 = 41,
	IP_PROTO_ROUTING = 43,
	IP_PROTO_FRAGMENT = 44,
	IP_PROTO_GRE = 47,
	IP_PROTO_AH = 51,
	IP_PROTO_ICMPV6 = 58,
	IP_PROTO_NONE = 59, /* RFC 8200, 4.7: nothing follows */
	IP_PROTO_DSTOPTS = 60,
	IP_PROTO_SCTP = 132,
	IP_PROTO_MOBILITY = 135,
	IP_PROTO_UDPLITE = 136,
	IP_PROTO_HIP = 139,
	IP_PROTO_SHIM6 = 140,
	IP_PROTO_ETHERNET = 143, /* RFC 8986, 10.1 */
};

static inline int proto_has_ports(__u8 proto)
{
	return proto == IP_PROTO_TCP || proto == IP_PROTO_UDP ||
	       proto == IP_PROTO_UDPLITE || proto == IP_PROTO_SCTP ||
	       proto == IP_PROTO_DCCP;
}

/* RFC 6437, 2: the lower bits of an IPv6 header's first word. */
enum { LABEL_BITS = 20, LABEL_MASK = (1 << LABEL_BITS) - 1 };

struct ether_wire {
	__u8 dst[6];
	__u8 src[6];
	__be16 type;
} WIRE;

/* 802.1Q tag as it follows the addresses: TCI, then the next type. */
struct vlan_wire {
	__be16 tci;
	__be16 type;
} WIRE;

/* RFC 2516, 4, with the PPP protocol field. */
struct pppoe_wire {
	__u8 version_type;
	__u8 code;
	__be16 session;
	__be16 length;
	__be16 protocol;
} WIRE;

/* RFC 791, 3.1. */
struct ipv4_wire {
	__u8 version_ihl;
	__u8 tos;
	__be16 total;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 proto;
	__be16 checksum;
	__be32 src;
	__be32 dst;
} WIRE;

/* RFC 8200, 3. */
struct ipv6_wire {
	__be32 version_class_flow;
	__be16 payload;
	__u8 next;
	__u8 hop_limit;
	__u8 src[16];
	__u8 dst[16];
} WIRE;

/* RFC 8200, 4: the beginning of all extension headers that the parser walks. */
struct ext_wire {
	__u8 next;
	__u8 len;
	__u8 body[6];
} WIRE;

/* RFC 8754, 2, up to the first of the segments, which is the last one of the way. */
struct segments_wire {
	__u8 next;
	__u8 len;
	__u8 routing_type;
	__u8 body[5];
	__u8 last[16];
} WIRE;

/* RFC 8200, 4.5. */
struct fragment_wire {
	__u8 next;
	__u8 reserved;
	__be16 offset_flags;
	__be32 id;
} WIRE;

/* The start of every transport header that has ports. */
struct ports_wire {
	__be16 src;
	__be16 dst;
} WIRE;

struct both_ports_wire {
	__be32 ports; /* both, read at once */
} WIRE;

/* Lengths in transport headers that do not depend on options or type. */
enum l4_header_len {
	TCP_FLAGS_END = 14,
	TCP_HEADER_LEN = 20,  /* RFC 9293, 3.1 */
	UDP_HEADER_LEN = 8,   /* RFC 768; RFC 3828, 3 */
	SCTP_HEADER_LEN = 12, /* RFC 9260, 3.1 */
	DCCP_HEADER_LEN = 12, /* RFC 4340, 5.1 */
	ICMP_HEADER_LEN = 4,  /* RFC 792, RFC 4443: type, code, checksum */
};

/* RFC 9293, 3.1: of the flag bits, those that mean something here. */
enum tcp_flag {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_ACK = 0x10
};

/* RFC 7348, 5. */
struct vxlan_wire {
	__be32 flags;
	__be32 vni; /* high 24 bits */
} WIRE;

/* RFC 8926, 3.4. */
struct geneve_wire {
	__u8 version_optlen;
	__u8 flags;
	__be16 type;
	__be32 vni; /* high 24 bits */
} WIRE;

/* RFC 2784, 2 and RFC 2890, 2. */
struct gre_wire {
	__be16 flags;
	__be16 type;
} WIRE;

struct gre_key_wire {
	__be32 key;
} WIRE;

/* draft-foschiano-erspan-03, 4.2: type II, and what type III begins with. */
struct erspan_wire {
	__be16 version_vlan;
	__be16 session; /* lower 10 bits */
	__be32 index;	/* of type III, a timestamp */
} WIRE;

/* 4.3. The frame's type is in bits 2 to 6. */
struct erspan3_wire {
	struct erspan_wire start;
	__be16 group;
	__u8 frame_type;
	__u8 platform; /* bit 0: a header of 8 bytes follows */
} WIRE;

/* 3GPP TS 29.281, 5.1. */
struct gtpu_wire {
	__u8 flags;
	__u8 type;
	__be16 len;
	__be32 teid;
} WIRE;

/* Follows struct gtpu_wire if any of three flags is set. */
struct gtpu_options_wire {
	__be16 sequence;
	__u8 n_pdu;
	__u8 next; /* the type of an extension header */
} WIRE;

/* 3GPP TS 29.281, 5.2.1: the end of an extension header, which is a multiple of this size. */
struct gtpu_end_wire {
	__u8 content[3];
	__u8 next;
} WIRE;

#endif
