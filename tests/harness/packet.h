/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Packets from lists of layers: { ETH, VLAN(10), IP4, TCP(0x02), DATA(8) }.
 * What a layer says of the next one (types, protocols) and of what it holds
 * (lengths) is filled in; POKE changes it afterwards.
 *
 * The n-th IP header of a packet, from 0, goes from packet_addr(n, 0) to
 * packet_addr(n, 1).
 */
#ifndef HARNESS_PACKET_H
#define HARNESS_PACKET_H

#include <stddef.h>
#include <stdint.h>

enum layer_kind {
	LAYER_END,
	LAYER_ETH,
	LAYER_VLAN,
	LAYER_PPPOE,
	LAYER_MPLS,
	LAYER_ARP,
	LAYER_IP4,
	LAYER_IP6,
	LAYER_EXT,
	LAYER_FRAGMENT,
	LAYER_TCP,
	LAYER_UDP,
	LAYER_PORTS,
	LAYER_ICMP,
	LAYER_VXLAN,
	LAYER_GENEVE,
	LAYER_GRE,
	LAYER_ERSPAN,
	LAYER_GTPU,
	LAYER_SEGMENTS,
	LAYER_NEXT,
	LAYER_DATA,
	LAYER_POKE,
	LAYER_PAD,
};

struct layer {
	enum layer_kind kind;
	uint32_t a, b, c;
};

enum {
	PACKET_TTL = 61,
	PACKET_TOS = 0xb9,	/* DSCP 46, ECT(1) */
	PACKET_LABEL = 0xfbeef, /* of the outer header; one less of the inner */
	PACKET_ID = 0x1234,
	PACKET_SRC_PORT = 1000,
	PACKET_DST_PORT = 2000,
	IP4_MORE = 0x2000,
	IP6_MORE = 1,
	GRE_C = 0x8000,
	GRE_R = 0x4000,
	GRE_K = 0x2000,
	GRE_S = 0x1000,
	GTPU_E = 4,
	GTPU_S = 2,
};

/* clang-format off */
#define ETH { LAYER_ETH, 0, 0, 0 }
#define VLAN(id) { LAYER_VLAN, 0x8100, (id), 0 }
#define VLAN_TPID(tpid, tci) { LAYER_VLAN, (tpid), (tci), 0 }
#define PPPOE { LAYER_PPPOE, 0, 0, 0 }
#define MPLS(label, bottom) { LAYER_MPLS, (label), (bottom), 0 }
#define ARP { LAYER_ARP, 0, 0, 0 }
#define IP4 { LAYER_IP4, 0, 0, 0 }
/* @options: bytes, a multiple of 4 */
#define IP4_OPTIONS(options) { LAYER_IP4, (options), 0, 0 }
/* @field: flags and offset in units of 8 bytes */
#define IP4_FRAGMENT(field) { LAYER_IP4, 0, (field), 0 }
#define IP6 { LAYER_IP6, 0, 0, 0 }
/* Length 0: of more than 64 KiB, as BIG TCP makes them. */
#define IP6_JUMBO { LAYER_IP6, 1, 0, 0 }
/* An extension header of @size bytes with @len in its length field. */
#define EXT(proto, len, size) { LAYER_EXT, (proto), (len), (size) }
#define EXT8(proto) EXT(proto, 0, 8)
/* @field: offset in bytes, and IP6_MORE */
#define FRAGMENT(field) { LAYER_FRAGMENT, (field), 0, 0 }
#define TCP(flags) { LAYER_TCP, (flags), 0, 0 }
#define TCP_OPTIONS(flags, options) { LAYER_TCP, (flags), (options), 0 }
#define UDP { LAYER_UDP, PACKET_SRC_PORT, PACKET_DST_PORT, 0 }
#define UDP_PORTS(src, dst) { LAYER_UDP, (src), (dst), 0 }
/* Any other protocol of @size bytes that begins with two ports. */
#define PORTS(proto, size) { LAYER_PORTS, (proto), (size), 0 }
#define ICMP(type, code) { LAYER_ICMP, 1, (type), (code) }
#define ICMP6(type, code) { LAYER_ICMP, 58, (type), (code) }
#define VXLAN(vni) UDP_PORTS(40000, 4789), { LAYER_VXLAN, (vni), 0, 0 }
/* @options: bytes, a multiple of 4 */
#define GENEVE(vni, options) \
	UDP_PORTS(40000, 6081), { LAYER_GENEVE, (vni), (options), 0 }
/* Behind GRE. @type: 2 or 3; @flags: of type III, the frame type and, in bit 0, a platform header */
#define ERSPAN(type, session, flags) { LAYER_ERSPAN, (type), (session), (flags) }
#define ERSPAN1 { LAYER_ERSPAN, 1, 0, 0 }
#define GRE(flags, key) { LAYER_GRE, (flags), (key), 0 }
/* @extensions: each with four bytes more than the one before */
#define GTPU(teid, flags, extensions)      \
	UDP_PORTS(40000, 2152),            \
	{                                  \
		LAYER_GTPU, (teid), (flags), (extensions) \
	}
/* A routing header with so many segments, of which the last one is the destination. */
#define SRH(count) { LAYER_SEGMENTS, (count), 0, 0 }
/* Say that @type follows, in whatever field the layer before has for it. */
#define NEXT(type) { LAYER_NEXT, (type), 0, 0 }
#define DATA(size) { LAYER_DATA, (size), 0, 0 }
/* Set byte @offset of the layer before, after all lengths. */
#define POKE(offset, value) { LAYER_POKE, (offset), (value), 0 }
/* Ethernet padding to @size bytes in total, not zero. */
#define PAD(size) { LAYER_PAD, (size), 0, 0 }
/* clang-format on */

enum { PACKET_MAX = 8192, PACKET_LAYERS = 24 };

struct packet_bytes {
	uint8_t bytes[PACKET_MAX];
	size_t len;
	size_t unpadded; /* without PAD */
	size_t headers;	 /* without DATA and PAD */
};

/* @layers ends with LAYER_END. */
void packet_build(const struct layer *layers, struct packet_bytes *ret_packet);

/* @end: 0 source, 1 destination; network order, IPv4 as ::ffff:a.b.c.d. */
void packet_addr4(unsigned int level, unsigned int end, uint8_t ret_addr[16]);
void packet_addr6(unsigned int level, unsigned int end, uint8_t ret_addr[16]);

extern const uint8_t packet_src_mac[6];
extern const uint8_t packet_dst_mac[6];

#endif
